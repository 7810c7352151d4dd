//! The planted sentences: one of each kind for each carrier, without labels, some of them with a newer one.

use serde::Serialize;

/// Meaning of a sentence to the model that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    SafetyRule,
    Constraint,
    Fact,
    Goal,
    Preference,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::SafetyRule, Self::Constraint, Self::Fact, Self::Goal, Self::Preference];
}

/// The kind of message that carries a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    System,
    User,
    Tool,
}

impl Carrier {
    pub(super) const ALL: [Self; 3] = [Self::System, Self::User, Self::Tool];
}

/// A sentence that replaces an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newer {
    /// Planted before the first compaction.
    Early(&'static str),
    /// Planted between the first compaction and the third.
    Late(&'static str),
}

/// A sentence to plant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canary {
    pub(super) kind: Kind,
    pub(super) carrier: Carrier,
    pub(super) sentence: &'static str,
    pub(super) newer: Option<Newer>,
}

const fn canary(kind: Kind, carrier: Carrier, sentence: &'static str) -> Canary {
    Canary { kind, carrier, sentence, newer: None }
}

impl Canary {
    const fn early(mut self, newer: &'static str) -> Self {
        self.newer = Some(Newer::Early(newer));
        self
    }

    const fn late(mut self, newer: &'static str) -> Self {
        self.newer = Some(Newer::Late(newer));
        self
    }
}

/// All canaries. No sentence states its importance, no two are alike, and none is about the work of a recorded
/// conversation.
pub(super) const CANARIES: [Canary; 15] = [
    canary(
        Kind::SafetyRule,
        Carrier::System,
        "Passport scans of the guests never leave the hotel's own network.",
    ),
    canary(
        Kind::SafetyRule,
        Carrier::User,
        "Do not touch the valves of boiler seven while the inspector is inside.",
    )
    .early("The inspector has left, and the valves of boiler seven may be touched again."),
    canary(Kind::SafetyRule, Carrier::Tool, "Deleting the notary's folder takes the consent of two people."),
    canary(Kind::Constraint, Carrier::System, "Letters to the harbour office have at most ninety words."),
    canary(Kind::Constraint, Carrier::User, "The flyer may cost no more than 640 crowns.")
        .late("There is more money for the flyer, which may cost up to 910 crowns."),
    canary(Kind::Constraint, Carrier::Tool, "The museum's uploader turns away pictures above 37 megabytes."),
    canary(Kind::Fact, Carrier::System, "The night desk of the hotel is run by Ottilie Brandt."),
    canary(Kind::Fact, Carrier::User, "My sister lives on the fourth floor, behind door 28."),
    canary(Kind::Fact, Carrier::Tool, "Mr. Okonkwo has the spare key of the archive.")
        .early("Mrs. Lindqvist has the spare key of the archive since Mr. Okonkwo retired."),
    canary(
        Kind::Goal,
        Carrier::System,
        "In the end the choir wants a programme that fits on a single sheet.",
    ),
    canary(
        Kind::Goal,
        Carrier::User,
        "What I am after is a route that reaches Narvik before the ferry of 18:40.",
    )
    .late("Narvik can wait: the route now has to reach Bergen before the ferry of 21:15."),
    canary(Kind::Goal, Carrier::Tool, "The letter asks for an index of the ledgers of 1893."),
    canary(Kind::Preference, Carrier::System, "The gardener likes measurements in feet and inches."),
    canary(Kind::Preference, Carrier::User, "About cheese I would rather read tables than long paragraphs.")
        .early("I have changed my mind about cheese: long paragraphs, and no tables."),
    canary(Kind::Preference, Carrier::Tool, "The profile shows that the owner takes tea in the evening."),
];
