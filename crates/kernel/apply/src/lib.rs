//! Patches, server-side apply and managed fields, as pure functions.
