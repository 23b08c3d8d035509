//! Tables for the walks over typed values.
