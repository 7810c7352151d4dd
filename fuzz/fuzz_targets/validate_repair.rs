//! Any conversation: a repaired conversation has no violation, and a second repair changes nothing.
#![no_main]

use epitome_core::{Pending, Profile, Repair, repair};
use epitome_tests::live;
use epitome_tests::message::repaired;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let messages = epitome_tests::generate::from_bytes(bytes);
    for profile in Profile::ALL {
        let request = repaired(&messages, &repair(profile, &messages, Pending::Over));
        let left = live::violations(profile, &request);
        assert!(left.is_empty(), "{}: {left:?}\n{messages:#?}\n{request:#?}", profile.as_str());
        let again = repair(profile, &request, Pending::Over);
        let kept = (0..).take(request.len()).map(Repair::Keep);
        assert!(kept.eq(again.iter().copied()), "{}: {messages:#?}\n{again:?}", profile.as_str());
    }
});
