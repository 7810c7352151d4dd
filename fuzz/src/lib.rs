//! What the fuzz targets share; each target is a file of its own in `fuzz_targets/`.
