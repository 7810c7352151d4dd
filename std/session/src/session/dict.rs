//! Sessions as JSON.

use serde_json::{Value, json};

use super::kept::{self, BESIDE};
use super::{AgentSession, ServiceSessionId, SessionError, SessionErrorKind, State, beside};

/// The value of `type`.
const TYPE: &str = "session";

impl AgentSession {
    /// The session as a JSON object: `{"type": "session", "session_id", "service_session_id", "state"}`, as Microsoft Agent
    /// Framework writes it and reads it.
    ///
    /// The messages of an in-memory history provider stand in `state[source_id].messages`, in the format of Agent
    /// Framework. The list is the whole log, with the marks of Agent Framework on hidden messages. It also contains the
    /// summaries and the shortened messages that are shown instead. A provider of Agent Framework with
    /// `skip_excluded=True`, and any of its compaction strategies, therefore sends the same messages as this crate.
    ///
    /// The key `epitome` beside the list has the data for which that format has no field. The same key beside the
    /// session's own fields has its usage, the corrections from usage reports, and the messages that are still to be
    /// stored of a run that was dropped in the middle of an answer. Agent Framework ignores both. Unknown fields of a
    /// session that was read are written again.
    ///
    /// ```
    /// use epitome_std::session::AgentSession;
    /// use serde_json::json;
    ///
    /// let read = json!({"type": "session", "session_id": "s-1", "service_session_id": null, "state": {"x": {"n": 1}}});
    /// let session = AgentSession::from_dict(read.clone())?;
    /// assert_eq!(session.state()["x"]["n"], 1);
    /// assert_eq!(session.to_dict()?, read);
    /// # Ok::<(), epitome_std::session::SessionError>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if a message cannot be written, or if a history belongs where the state has something other than an object.
    pub fn to_dict(&self) -> Result<Value, SessionError> {
        let state = self.whole_state()?;
        let mut dict = self.unknown.clone();
        dict.insert("type".to_owned(), Value::from(TYPE));
        dict.insert("session_id".to_owned(), Value::from(self.session_id().as_str()));
        dict.insert("service_session_id".to_owned(), service_id(self.service_session_id()));
        dict.insert("state".to_owned(), Value::Object(state));
        // The data of a newer release stays there.
        if !dict.contains_key(BESIDE)
            && let Some(beside) = beside::write(self)?
        {
            dict.insert(BESIDE.to_owned(), beside);
        }
        Ok(Value::Object(dict))
    }

    /// The state of every provider, as [`AgentSession::to_dict`] writes it: with the messages of in-memory histories, which
    /// [`AgentSession::state`] does not have, because the session keeps them as messages.
    ///
    /// ```
    /// # use epitome_std::message::Message;
    /// # use epitome_std::provider::{HistoryProvider, Providers};
    /// # use epitome_std::run::{ModelResponse, Run, RunOptions, RunSettings};
    /// # use epitome_std::session::AgentSession;
    /// # futures::executor::block_on(async {
    /// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::with_id("s-1"));
    /// let input = vec![Message::user("Hello!")];
    /// let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
    /// let prompt = run.prompt().await?;
    /// run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Hi.")])).await?;
    /// run.finish().await?;
    /// let state = session.whole_state()?;
    /// assert_eq!(state["in_memory"]["messages"][1]["contents"][0]["text"], "Hi.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`AgentSession::to_dict`].
    pub fn whole_state(&self) -> Result<State, SessionError> {
        let mut state = self.state.clone();
        for (source_id, store) in &self.histories {
            let place = state.entry(source_id.as_str()).or_insert_with(|| json!({}));
            let Value::Object(place) = place else {
                return Err(SessionError::invalid(format!(
                    "the session's state of {source_id:?} is not an object: replace it by one, or remove it"
                )));
            };
            // A list that was put there from outside is newer, and still to be taken over.
            if !place.contains_key(kept::MESSAGES) {
                kept::write(store, self.session_id(), place)?;
            }
        }
        Ok(state)
    }

    /// Reads the session in `dict`. The state is kept as it is until a provider uses it.
    ///
    /// # Errors
    /// `Invalid` if `dict` is not an object, its type is not `session`, `session_id` is missing or not a text,
    /// `service_session_id` is neither a text nor an object, or `state` is not an object.
    pub fn from_dict(dict: Value) -> Result<Self, SessionError> {
        let Value::Object(mut dict) = dict else {
            return Err(SessionError::invalid("a session is a JSON object"));
        };
        match dict.remove("type") {
            None => {}
            Some(Value::String(kind)) if kind == TYPE => {}
            Some(_) => return Err(SessionError::invalid("this is no session: `type` is not \"session\"")),
        }
        let id = match dict.remove("session_id") {
            Some(Value::String(id)) => id,
            Some(_) => return Err(SessionError::invalid("`session_id` is not a text")),
            None => return Err(SessionError::invalid("`session_id` is missing: a session needs one")),
        };
        let mut session = Self::with_id(id);
        match dict.remove("service_session_id") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => session.set_service_session_id(Some(text.into())),
            Some(Value::Object(object)) => session.set_service_session_id(Some(object.into())),
            Some(_) => {
                return Err(SessionError::invalid("`service_session_id` is neither a text nor an object"));
            }
        }
        session.state = match dict.remove("state") {
            None => State::new(),
            Some(Value::Object(state)) => state,
            Some(_) => return Err(SessionError::invalid("`state` is not an object")),
        };
        if dict.get(BESIDE).is_some_and(|value| beside::read(&mut session, value)) {
            dict.remove(BESIDE);
        }
        session.unknown = dict;
        Ok(session)
    }

    /// The session as JSON text; see [`AgentSession::to_dict`].
    ///
    /// # Errors
    /// As [`AgentSession::to_dict`].
    pub fn to_json(&self) -> Result<String, SessionError> {
        Ok(self.to_dict()?.to_string())
    }

    /// Reads the session in a JSON text; see [`AgentSession::from_dict`].
    ///
    /// An integer beyond 64 bits is read as the nearest floating-point number. This is the only value that changes.
    ///
    /// # Errors
    /// As [`AgentSession::from_dict`]; `Corrupt` if the text is not JSON; `Invalid` if the fault is a NaN or an
    /// infinity, which Python writes and JSON does not have.
    pub fn from_json(text: &str) -> Result<Self, SessionError> {
        let value = serde_json::from_str(text).map_err(|error| not_json(text, &error))?;
        Self::from_dict(value)
    }
}

fn service_id(id: Option<&ServiceSessionId>) -> Value {
    match id {
        None => Value::Null,
        Some(ServiceSessionId::Text(text)) => Value::from(&**text),
        Some(ServiceSessionId::Object(object)) => Value::Object(object.clone()),
    }
}

fn not_json(text: &str, error: &serde_json::Error) -> SessionError {
    let (line, column) = (error.line(), error.column());
    let before = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let at = before.saturating_add(column);
    // The column is at the first character that fits no JSON, or at the one before.
    let number = |back: usize| text.get(at.checked_sub(back)?..);
    let non_finite = [2, 1, 0]
        .into_iter()
        .filter_map(number)
        .find_map(|rest| ["NaN", "Infinity", "-Infinity"].into_iter().find(|name| rest.starts_with(name)));
    match non_finite {
        Some(name) => SessionError::invalid(format!(
            "line {line}, column {column}: {name} is not JSON: write null or a finite number"
        )),
        // The text of the error can quote the session.
        None => SessionError::new(
            SessionErrorKind::Corrupt,
            format!("line {line}, column {column}: the session is not JSON"),
        ),
    }
}
