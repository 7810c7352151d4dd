//! Printable urls of servers, without names and passwords.

/// The printable form of a server's `url`: the scheme, the hosts, the ports and the database, without names, passwords
/// and options. An ambiguous url is reduced to its scheme, because a part of a password may look like a host.
///
/// ```
/// use epitome_history::shown_url;
///
/// assert_eq!(shown_url("postgres://user:secret@host:5432/db?sslmode=require"), "postgres://host:5432/db");
/// ```
#[must_use]
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return HIDDEN.into();
    };
    let place = match rest.rsplit_once('@') {
        Some((user, _)) if user.contains(['/', '?', '#', '@']) => None,
        Some((_, place)) => Some(place),
        None => Some(rest),
    };
    let place = place.and_then(|place| place.split(['?', '#']).next());
    match place.filter(|place| is_place(place)) {
        Some(place) => format!("{scheme}://{place}"),
        None => format!("{scheme}://{HIDDEN}"),
    }
}

const HIDDEN: &str = "***";

fn is_scheme(scheme: &str) -> bool {
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether a text consists of hosts with ports and an optional database. A user and a password without a host have
/// another form.
fn is_place(place: &str) -> bool {
    let (hosts, _) = place.split_once('/').unwrap_or((place, ""));
    hosts.split(',').all(|host| {
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let (_, port) = after.split_once(':').unwrap_or((after, ""));
        port.len() <= PORT_DIGITS_MAX && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A port is at most 65535.
const PORT_DIGITS_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_url_is_shown_without_who_asks_and_how() {
        for (url, expected) in [
            ("postgres://user:secret@host:5432/db?sslmode=require", "postgres://host:5432/db"),
            ("redis://:secret@[::1]:6379/0", "redis://[::1]:6379/0"),
            ("rediss://host", "rediss://host"),
            ("postgres://host/db?user=x&password=secret", "postgres://host/db"),
            ("postgresql://secret@a:1,b:2/db", "postgresql://a:1,b:2/db"),
            ("postgres://%2Frun%2Fpostgres/db", "postgres://%2Frun%2Fpostgres/db"),
            // Malformed urls, whose parts are not shown.
            ("postgres://user:secret", "postgres://***"),
            ("postgres://user:se/cret@host/db", "postgres://***"),
            ("postgres://user:se?cret@host/db", "postgres://***"),
            ("postgres://user:se@cret@host/db", "postgres://***"),
            ("postgres://host/db?password=se@cret", "postgres://***"),
            ("redis:secret", "***"),
            ("secret", "***"),
            ("sec ret://host", "***"),
        ] {
            assert_eq!(shown_url(url), expected);
        }
    }

    proptest! {
        #[test]
        fn no_password_is_shown_wherever_it_stands(
            odd in "[/?#@:,&=%\\[\\] .a-z0-9]{0,8}",
            then in "[/?#@:,&=%\\[\\] .a-z0-9]{0,8}",
        ) {
            let password = format!("{odd}SECRET{then}");
            for url in [
                format!("postgres://user:{password}@host:5432/db"),
                format!("postgres://:{password}@host"),
                format!("postgres://host/db?password={password}"),
                format!("postgres://user:{password}@host/db?x=y"),
                format!("postgres:{password}@host"),
            ] {
                prop_assert!(!shown_url(&url).contains("SECRET"), "{} of {}", shown_url(&url), url);
            }
        }
    }
}
