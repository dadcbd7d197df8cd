"""Where rows lie: datasets, formats, row groups. Reads; decides nothing."""
