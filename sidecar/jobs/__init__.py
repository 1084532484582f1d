"""Jobs: claims them with weights, admits keyed and limited ones, cleans up after them."""
