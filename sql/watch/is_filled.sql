-- Whether what was captured before has been added: with it comes an item without a URL.
SELECT EXISTS (SELECT 1 FROM item WHERE url = '');
