//! DataVolumes: filled from everywhere, or told why not.
