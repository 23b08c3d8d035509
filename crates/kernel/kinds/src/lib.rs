//! What each built-in kind does on write: defaults, preparation, validation, warnings.
