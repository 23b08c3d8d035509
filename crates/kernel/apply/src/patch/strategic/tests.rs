//! Tables for strategic merge patch.
