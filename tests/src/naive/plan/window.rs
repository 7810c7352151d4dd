//! The groups that a window shows.

use epitome_compactors::Window;
use epitome_core::GroupKind;

use super::Draft;

impl Draft<'_> {
    /// The groups of the window: all groups since the oldest turn for which all of them fit. If there is no such turn,
    /// all groups since the oldest group for which all of them fit.
    pub(super) fn window(&self, window: Window) -> Vec<usize> {
        let visible = |at: &usize| !self.is_gone(*at) && self.groups[*at].kind != GroupKind::System;
        let from = |first: usize| (first..self.groups.len()).filter(visible).collect::<Vec<usize>>();
        let since = |turn: u32| {
            let groups = (0..self.groups.len()).filter(visible);
            groups.filter(|at| self.groups[*at].turn >= turn).collect::<Vec<usize>>()
        };
        if let Window::Turns(turns) = window {
            return since((self.naive.turn + 1).saturating_sub(turns));
        }
        let whole = (0..=self.naive.turn).map(since).find(|groups| self.fits(window, groups));
        let part = || (0..=self.groups.len()).map(from).find(|groups| self.fits(window, groups));
        whole.or_else(part).unwrap_or_default()
    }

    pub(super) fn fits(&self, window: Window, groups: &[usize]) -> bool {
        let tokens = |at: &usize| self.size_of(*at);
        match window {
            Window::Groups(count) => groups.len() <= count as usize,
            Window::Tokens(room) => groups.iter().map(tokens).sum::<u64>() <= room,
            _ => {
                let goal = self.budget.goal().unwrap_or(self.budget.limit());
                let free = groups.iter().filter(|at| self.may_drop(**at));
                let all = (0..self.groups.len()).filter(|at| self.may_drop(*at));
                let stays = self.tokens() - all.map(|at| tokens(&at)).sum::<u64>();
                free.map(tokens).sum::<u64>() <= goal.saturating_sub(stays)
            }
        }
    }
}
