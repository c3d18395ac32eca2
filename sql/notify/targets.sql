SELECT DISTINCT target FROM delivery WHERE state = 'waiting';
