//! Any JSON as a session that was kept: an error, or a session that is kept and read again as the same.
#![no_main]

use epitome_std::session::AgentSession;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(dict) = serde_json::from_str(text) else { return };
    let Ok(session) = AgentSession::from_dict(dict) else { return };
    let Ok(kept) = session.to_dict() else { return };
    let again = AgentSession::from_dict(kept.clone()).unwrap();
    assert_eq!(again.to_dict().unwrap(), kept);
});
