//! Tools of other texts, and the run that they are read as beside.

use super::{Known, say};
use crate::post::{About, Post, Statement};

/// That texts were joined, or why one was not.
pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let name = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let joined = post.joined.iter().map(|one| {
        let words = format!(
            "{} is read as printed during the run of {}: nothing in them speaks against it.",
            name(&one.name),
            name(&post.name)
        );
        say(post, About::Agreement, &[], words)
    });
    let apart = post.apart.iter().map(|why| {
        let words = format!(
            "{} is read as beside no run: {why}. To say that it is, put it below the run's \
             command, in one file.",
            name(&post.name)
        );
        say(post, About::LeftOut, &[], words)
    });
    joined.chain(apart).collect()
}
