//! Tables for the field manager.
