//! Tables of merges.
