//! The operations on a session, derived from a seed, the same on every system.

/// One operation. Places of the log are fractions in 256ths, so that they fit any length.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Append {
        token: u8,
        behind: u8,
        messages: Vec<Kind>,
    },
    /// Hides the messages between places of the log.
    Commit(Commit),
    Repeat,
    Delete,
}

#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) places: Vec<(u8, u8)>,
    /// Place of the log, part, kind of stand-in, and reduction of the message's size.
    pub(super) edits: Vec<(u8, u8, u8, u8)>,
    /// Whether the record is made to fit groups and summaries.
    pub(super) whole: bool,
    /// If set, the record hides all messages from this place on, with instructions, and edits and summarizes nothing.
    pub(super) takes_back_from: Option<u8>,
    pub(super) summarize: bool,
    /// The authority that its summary claims.
    pub(super) claims: Claim,
    pub(super) parent_off: u8,
    pub(super) head_back: u8,
}

/// The authority that a summary claims.
#[derive(Debug, Clone, Copy)]
pub(super) enum Claim {
    Least,
    AsMuchAsItMay,
    TooMuch,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    User,
    Calls(u8),
    /// The answer to a call of the group at a place of the log.
    Answer(u8),
    Late(u8),
    Orphan,
    Instruction,
    /// Reasoning and text.
    Thinks,
}

/// Makes 1 to 39 operations.
pub(super) fn ops(seed: u64) -> Vec<Op> {
    let mut dice = Dice(seed);
    (0..=dice.below(39)).map(|_| op(&mut dice)).collect()
}

fn op(dice: &mut Dice) -> Op {
    match dice.below(18) {
        0..8 => Op::Append {
            token: dice.below(32),
            behind: dice.seldom(),
            messages: (0..dice.below(5)).map(|_| kind(dice)).collect(),
        },
        8..15 => Op::Commit(Commit {
            places: (0..dice.below(3)).map(|_| (dice.byte(), dice.byte())).collect(),
            edits: (0..dice.below(8)).map(|_| edit(dice)).collect(),
            whole: dice.below(5) > 0,
            takes_back_from: (dice.below(4) == 0).then(|| dice.byte()),
            summarize: dice.below(2) > 0,
            claims: claim(dice),
            parent_off: dice.seldom(),
            head_back: dice.below(4),
        }),
        15..17 => Op::Repeat,
        _ => Op::Delete,
    }
}

fn edit(dice: &mut Dice) -> (u8, u8, u8, u8) {
    (dice.byte(), dice.below(3), dice.byte(), dice.below(4))
}

fn claim(dice: &mut Dice) -> Claim {
    match dice.below(16) {
        0..4 => Claim::Least,
        4..15 => Claim::AsMuchAsItMay,
        _ => Claim::TooMuch,
    }
}

fn kind(dice: &mut Dice) -> Kind {
    match dice.below(32) {
        0..6 => Kind::User,
        6..12 => Kind::Calls(dice.below(3) + 1),
        12..18 => Kind::Answer(dice.byte()),
        18..22 => Kind::Late(dice.byte()),
        22..24 => Kind::Orphan,
        24..28 => Kind::Instruction,
        _ => Kind::Thinks,
    }
}

/// The generator known as `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Dice(u64);

impl Dice {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 56) as u8
    }

    /// A number below `end`. The bias of at most one 256th does not matter here.
    fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// Usually 0, otherwise any number.
    fn seldom(&mut self) -> u8 {
        if self.below(10) > 0 { 0 } else { self.byte() }
    }
}
