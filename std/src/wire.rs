//! Messages as text: the form that stores keep.

pub mod stored;
