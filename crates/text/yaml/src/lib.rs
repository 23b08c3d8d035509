//! YAML as Go's libraries read and write it, with bounds.
