//! System calls for which neither the standard library nor `nix` has a safe function. All unsafe code of the workspace is
//! in this folder; each block says why it is sound.

pub mod capabilities;
pub mod descriptors;
pub mod fork;
pub mod loopback;
pub mod mount;
pub mod signals;
pub mod socket;
pub mod wait;
