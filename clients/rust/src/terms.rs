//! Which term of each group is open, as the comments of `callback.proto` ask.
//!
//! Guarantees: a term that was lost never opens again, however late its messages arrive; a term that ends
//! stops everything that runs in it, and `close` returns only when all of it has stopped.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Held by what runs in a term: `changed` returns when the term is over.
pub type InTerm = watch::Receiver<()>;

#[derive(Default)]
pub struct Terms(Mutex<HashMap<String, Group>>);

#[derive(Default)]
struct Group {
    lost: u64,
    open: Option<Term>,
}

struct Term {
    epoch: u64,
    over: watch::Sender<()>,
}

impl Terms {
    /// Opens a term, unless it is old news; whatever was open before it is over.
    pub async fn open(&self, group: &str, epoch: u64) {
        let before = {
            let mut groups = self.groups();
            let group = groups.entry(group.to_owned()).or_default();
            let known = group.open.as_ref().map_or(0, |term| term.epoch);
            if epoch <= group.lost.max(known) {
                return;
            }
            group.lost = group.lost.max(known);
            group.open.replace(Term { epoch, over: watch::Sender::new(()) })
        };
        end(before).await;
    }

    /// Ends the term, or with epoch 0 whatever term is open; any other call changes nothing.
    pub async fn close(&self, group: &str, epoch: u64) {
        let ended = {
            let mut groups = self.groups();
            let group = groups.entry(group.to_owned()).or_default();
            group.lost = group.lost.max(epoch);
            let ended = group.open.take_if(|term| epoch == 0 || term.epoch <= epoch);
            if let Some(term) = &ended {
                group.lost = group.lost.max(term.epoch);
            }
            ended
        };
        end(ended).await;
    }

    /// Ends every open term.
    pub async fn close_all(&self) {
        for group in self.led() {
            self.close(&group, 0).await;
        }
    }

    /// The groups with an open term.
    pub fn led(&self) -> Vec<String> {
        self.groups().iter().filter(|(_, group)| group.open.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// To be held while something runs in that term; none: the term is not open.
    pub fn enter(&self, group: &str, epoch: u64) -> Option<InTerm> {
        let groups = self.groups();
        let term = groups.get(group)?.open.as_ref()?;
        (term.epoch == epoch).then(|| term.over.subscribe())
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<String, Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(term: Option<Term>) {
    if let Some(term) = term {
        term.over.send_replace(());
        term.over.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::Terms;

    #[tokio::test]
    async fn a_lost_term_never_opens_again() {
        let terms = Terms::default();
        terms.open("default", 7).await;
        assert!(terms.enter("default", 7).is_some());
        terms.close("default", 7).await;
        terms.open("default", 7).await;
        assert!(terms.enter("default", 7).is_none());
        terms.open("default", 8).await;
        assert!(terms.enter("default", 8).is_some());
    }

    #[tokio::test]
    async fn epoch_zero_ends_whatever_is_open_and_old_losses_end_nothing() {
        let terms = Terms::default();
        terms.open("default", 7).await;
        terms.close("default", 6).await;
        assert!(terms.enter("default", 7).is_some());
        terms.close("default", 0).await;
        assert!(terms.enter("default", 7).is_none());
        terms.close("never-seen", 0).await;
    }

    #[tokio::test]
    async fn closing_waits_for_what_runs() {
        let terms = std::sync::Arc::new(Terms::default());
        terms.open("default", 7).await;
        let mut running = terms.enter("default", 7).expect("open");
        let closing = tokio::spawn({
            let terms = terms.clone();
            async move { terms.close("default", 7).await }
        });
        running.changed().await.expect("told");
        assert!(!closing.is_finished());
        drop(running);
        closing.await.expect("ended");
    }
}
