//! The short form of a tool's name in a row of the table of parts.

/// The name of a tool as 16 bits of a digest.
///
/// Two names with equal digests are one name to a strategy that spares a tool: it spares one tool too many, never one
/// too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolName(u16);

impl ToolName {
    /// The short form of a name, for comparison.
    ///
    /// ```
    /// use epitome_core::ToolName;
    ///
    /// const SEARCH: ToolName = ToolName::new("web_search");
    /// assert_eq!(SEARCH, ToolName::new("web_search"));
    /// assert_ne!(SEARCH, ToolName::new("read_file"));
    /// ```
    #[must_use]
    pub const fn new(name: &str) -> Self {
        // FNV-1a, folded. Zero stands for no name.
        let (mut hash, mut rest) = (0x811c_9dc5_u32, name.as_bytes());
        while let [first, others @ ..] = rest {
            hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
            rest = others;
        }
        let folded = ((hash >> 16) ^ hash) as u16;
        Self(if folded == 0 { 1 } else { folded })
    }

    pub(crate) const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }
}
