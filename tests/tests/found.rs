//! What the properties found, each as the smallest case of it.

use epitome_core::message::Role;
use epitome_core::{GroupKind, Pending, Profile, repair};
use epitome_tests::live;
use epitome_tests::message::{Message, Part, repaired};
use epitome_tests::naive::violations;

fn says(role: Role, tokens: u32) -> Message {
    Message::new(role, vec![Part::Text("Fine.".into())], tokens)
}

fn calls(id: &str, tokens: u32) -> Message {
    Message::new(Role::Assistant, vec![Part::Call(id.into())], tokens)
}

fn result(role: Role, id: &str, tokens: u32) -> Message {
    Message::new(role, vec![Part::Result(id.into())], tokens)
}

/// It was an orphan: instructions of the caller, hidden.
#[test]
fn a_result_in_instructions_does_not_make_them_an_answer() {
    let mut system = says(Role::System, 5);
    system.parts.push(Part::Result("c1".into()));
    let (index, placed) = live::index_of(&[system]);
    assert!(!placed[0].orphan);
    assert_eq!(live::groups(index.view())[0].kind, GroupKind::System);
}

/// The turn advanced without a user message in it, and the request before it lost its protection.
#[test]
fn words_beside_a_result_begin_no_turn() {
    let mut answer = result(Role::User, "c1", 5);
    answer.parts.push(Part::Text("Here you are.".into()));
    let (index, _) = live::index_of(&[says(Role::User, 5), calls("c1", 5), answer, calls("c2", 5)]);
    assert_eq!(index.view().turn().0, 1);
    let (index, _) = live::index_of(&[says(Role::User, 5), result(Role::User, "", 5), says(Role::User, 5)]);
    assert_eq!(index.view().turn().0, 2);
}

/// A repaired request was still refused.
#[test]
fn a_result_in_a_users_message_is_legal_after_its_call() {
    let request = [says(Role::User, 5), calls("c1", 5), result(Role::User, "c1", 5)];
    for profile in Profile::ALL {
        assert_eq!(live::violations(profile, &request), []);
        let repairs = repair(profile, &request, Pending::Over);
        assert_eq!(violations(profile, &repaired(&request, &repairs)), []);
    }
}
