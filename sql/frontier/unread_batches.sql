SELECT id, domain FROM batch WHERE state = 'running' ORDER BY id;
