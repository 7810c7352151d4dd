//! The key of a store, and the keys of its sessions, which are derived from it.

use core::fmt;

use base64ct::{Base64Unpadded, Encoding};
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::Place;
use crate::rules::invalid;
use crate::{StoreError, StoreErrorKind};

/// The key with which a store encrypts: 32 random bytes.
///
/// ```
/// use epitome_history::StoreKey;
///
/// let key = StoreKey::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// assert_eq!(format!("{key:?}"), "StoreKey(..)");
/// # Ok::<(), epitome_history::StoreError>(())
/// ```
///
/// *Not a password*: a text that a person can remember can be guessed. `openssl rand -hex 32` makes a key.
///
/// *Loss*: without the key, all data that was written with it is lost.
///
/// The memory of the key is overwritten when the key is dropped. Copies of the caller are not overwritten.
#[derive(Clone)]
pub struct StoreKey(Zeroizing<[u8; KEY_BYTES]>);

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;

/// Label of a session's key in the key derivation; the session's name follows it. Another version of the format has
/// another label.
const SESSION: &[u8] = b"epitome history 1 session\0";

impl StoreKey {
    /// Makes a key from these bytes.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Parses a key of 64 hexadecimal digits. White space around the digits is ignored.
    ///
    /// # Errors
    /// `Invalid` if `text` has another form. The error contains nothing of the text.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let wrong = || invalid("a key has 64 hexadecimal digits; `openssl rand -hex 32` makes one");
        let text = text.trim_ascii().as_bytes();
        if text.len() != 2 * KEY_BYTES {
            return Err(wrong());
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            for digit in pair {
                let digit = char::from(*digit).to_digit(16).ok_or_else(wrong)?;
                *byte = (*byte << 4) | u8::try_from(digit).unwrap_or_default();
            }
        }
        Ok(Self(bytes))
    }

    /// Derives the key of `session` in the file with this id.
    pub fn of(&self, file: Uuid, session: &[u8]) -> SessionKey {
        let derived = Hkdf::<Sha256>::new(Some(file.as_bytes()), self.0.as_slice());
        let mut both = Zeroizing::new([0; 2 * KEY_BYTES]);
        #[expect(clippy::expect_used, reason = "HKDF gives up to 255 times 32 bytes")]
        derived.expand_multi_info(&[SESSION, session], both.as_mut_slice()).expect("two keys are few");
        let (cipher, digests) = both.split_at(KEY_BYTES);
        let mut kept = Zeroizing::new([0; KEY_BYTES]);
        kept.copy_from_slice(digests);
        let mut key = Key::default();
        key.copy_from_slice(cipher);
        let cipher = XChaCha20Poly1305::new(&key);
        zeroize::Zeroize::zeroize(key.as_mut_slice());
        SessionKey { cipher, digests: kept }
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey(..)")
    }
}

/// The keys for the texts of one session in one file.
#[derive(Clone)]
pub struct SessionKey {
    cipher: XChaCha20Poly1305,
    digests: Zeroizing<[u8; KEY_BYTES]>,
}

impl SessionKey {
    /// Returns the nonce, the ciphertext and its tag, in base64.
    pub fn close(&self, place: Place, text: &[u8]) -> Result<String, StoreError> {
        let nonce = XNonce::try_generate().map_err(|error| {
            let context = "the system has no random numbers to encrypt with; try again";
            StoreError::new(StoreErrorKind::Unavailable, context).with_source(error)
        })?;
        let payload = Payload { msg: text, aad: &place.bytes() };
        let sealed =
            self.cipher.encrypt(&nonce, payload).map_err(|_| invalid("a text is too long to encrypt"))?;
        Ok(Base64Unpadded::encode_string(&[&nonce[..], &sealed].concat()))
    }

    pub fn open(&self, place: Place, stored: &[u8]) -> Option<Vec<u8>> {
        let sealed = Base64Unpadded::decode_vec(core::str::from_utf8(stored).ok()?).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<24>()?;
        let payload = Payload { msg: sealed, aad: &place.bytes() };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    }

    /// The HMAC-SHA256 of `digest`. HMAC is the extract step of HKDF.
    pub fn digest(&self, digest: &[u8; 32]) -> [u8; 32] {
        Hkdf::<Sha256>::extract(Some(self.digests.as_slice()), digest).0.into()
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> StoreKey {
        StoreKey::new([byte; KEY_BYTES])
    }

    #[test]
    fn a_text_opens_only_where_it_was_closed() {
        let (file, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let session = key(7).of(file, b"s");
        let closed = session.close(Place::line(3), b"a secret").unwrap();
        assert_eq!(session.open(Place::line(3), closed.as_bytes()).unwrap(), b"a secret");
        assert_ne!(session.close(Place::line(3), b"a secret").unwrap(), closed, "a nonce of its own");
        for (elsewhere, place) in [
            (key(8).of(file, b"s"), Place::line(3)),
            (key(7).of(other, b"s"), Place::line(3)),
            (key(7).of(file, b"t"), Place::line(3)),
            (key(7).of(file, b"s"), Place::line(4)),
            (key(7).of(file, b"s"), Place::CHECK),
        ] {
            assert!(elsewhere.open(place, closed.as_bytes()).is_none());
        }
        for at in 0..closed.len() {
            let mut changed = closed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(session.open(Place::line(3), &changed).is_none(), "{at}");
            assert!(session.open(Place::line(3), &closed.as_bytes()[..at]).is_none(), "{at}");
        }
    }

    #[test]
    fn digests_are_told_apart_only_with_the_key() {
        let session = key(7).of(Uuid::nil(), b"s");
        assert_eq!(session.digest(&[1; 32]), key(7).of(Uuid::nil(), b"s").digest(&[1; 32]));
        assert_ne!(session.digest(&[1; 32]), session.digest(&[2; 32]));
        assert_ne!(session.digest(&[1; 32]), key(7).of(Uuid::nil(), b"t").digest(&[1; 32]));
    }

    /// Computes the documented format independently: HKDF from HMAC, and the bare cipher.
    #[test]
    fn the_format_is_the_documented_one() {
        let file = Uuid::from_u128(0x1234);
        let mut derived = [0; 64];
        let info = [b"epitome history 1 session\0".as_slice(), b"demo"].concat();
        Hkdf::<Sha256>::new(Some(file.as_bytes()), &[9; 32]).expand(&info, &mut derived).unwrap();
        let closed = key(9).of(file, b"demo").close(Place::line(0x0102), b"text").unwrap();
        let bytes = Base64Unpadded::decode_vec(&closed).unwrap();
        let mut key = Key::default();
        key.copy_from_slice(&derived[..32]);
        let nonce: [u8; 24] = bytes[..24].try_into().unwrap();
        let aad = [1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let payload = Payload { msg: &bytes[24..], aad: &aad };
        assert_eq!(XChaCha20Poly1305::new(&key).decrypt(&XNonce::from(nonce), payload).unwrap(), b"text");
        assert_eq!(bytes.len(), 24 + 4 + 16);
    }

    #[test]
    fn a_key_is_64_digits_and_is_never_shown() {
        let text = "00ff".repeat(16);
        let key = StoreKey::parse(&format!(" {}\n", text.to_uppercase())).unwrap();
        assert_eq!(*key.0, *StoreKey::parse(&text).unwrap().0);
        assert_eq!(key.0[..2], [0, 0xff]);
        for wrong in ["", "00ff", &text[1..], &text.replace('f', "g"), &format!("{text}00"), &"é".repeat(32)]
        {
            let error = StoreKey::parse(wrong).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Invalid);
            assert!(wrong.is_empty() || !format!("{error} {error:?}").contains(wrong));
        }
        assert_eq!(format!("{key:?} {:?}", key.of(Uuid::nil(), b"")), "StoreKey(..) SessionKey(..)");
    }
}
