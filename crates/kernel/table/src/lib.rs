//! kubectl's columns for built-in kinds and custom resources.
