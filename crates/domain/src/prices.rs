//! What models cost.
