"""Where an index lives: two files in a folder, unless you bring a store of your own."""
