//! Tokens whose signature was found to be good.
//!
//! Only that is remembered. Times, audiences and objects are looked at for every request, so that a token
//! ends when it should.

use std::{
    collections::HashMap,
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};

use super::Claims;

/// When so many were new, those before them are forgotten.
const GENERATION: usize = 2048;

type Fingerprint = [u8; 32];

/// A token's claims, and the key that signed them.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) key_id: Arc<str>,
    pub(super) claims: Arc<Claims>,
}

#[derive(Default)]
struct Generations {
    newer: HashMap<Fingerprint, Known>,
    older: HashMap<Fingerprint, Known>,
}

#[derive(Default)]
pub(super) struct Remembered(Mutex<Generations>);

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remembered")
    }
}

pub(super) fn fingerprint(token: &str) -> Fingerprint {
    Sha256::digest(token).into()
}

impl Remembered {
    pub(super) fn find(&self, token: &Fingerprint) -> Option<Known> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.newer.get(token) {
            return Some(known.clone());
        }
        let known = all.older.remove(token)?;
        all.keep(*token, known.clone());
        Some(known)
    }

    pub(super) fn keep(&self, token: Fingerprint, known: Known) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.keep(token, known);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let all = self.0.lock().unwrap();
        all.newer.len() + all.older.len()
    }
}

impl Generations {
    fn keep(&mut self, token: Fingerprint, known: Known) {
        if self.newer.len() >= GENERATION {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(token, known);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Kubernetes, *};

    #[test]
    fn what_is_used_stays_and_the_number_is_bounded() {
        let remembered = Remembered::default();
        let known = Known {
            key_id: "key".into(),
            claims: Arc::new(Claims {
                audiences: Vec::new(),
                expires: 0,
                issued: 0,
                issuer: String::new(),
                id: String::new(),
                kubernetes: Kubernetes::default(),
                not_before: 0,
                subject: String::new(),
            }),
        };
        let often = fingerprint("often");
        remembered.keep(often, known.clone());
        for number in 0..5 * GENERATION {
            remembered.keep(fingerprint(&number.to_string()), known.clone());
            assert!(remembered.find(&often).is_some(), "{number}");
        }
        assert!(remembered.len() <= 2 * GENERATION);
        assert!(remembered.find(&fingerprint("0")).is_none());
    }
}
