//! What was given, and what is wrong with it?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::file::{Object, Source};
use nodemolt_api::into_bootstrap::offered;
use nodemolt_api::listing::{Listing, pool};
use nodemolt_api::nodeclaim::NodeClaim;
use nodemolt_api::nodepool::NodePool;
use nodemolt_api::problem::{Finding, Problem, Severity};
use nodemolt_fit::capacity::NodeSettings;
use nodemolt_fit::pool::Pool;

use super::Talk;
use crate::input::{class_name, list_files, read_bytes, show};
use crate::output::{Exit, Failure};

#[derive(Debug, Default)]
pub(super) struct Files {
    pub listing: Listing,
    pub pools: Vec<PoolFile>,
    pub classes: BTreeMap<String, ClassFile>,
    pub claims: Vec<NodeClaim>,
    /// By the file's name, to show the line of a problem.
    texts: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct PoolFile {
    pub wire: NodePool,
    pub pool: Pool,
}

#[derive(Debug)]
pub(super) struct ClassFile {
    pub wire: EC2NodeClass,
    pub settings: NodeSettings,
}

impl Files {
    /// Reads all files, or says all that is wrong with them.
    pub(super) fn read(paths: &[PathBuf], talk: &mut Talk) -> Result<Self, Failure> {
        let mut files = Self::default();
        let mut problems = Vec::new();
        for path in list_files(paths)? {
            let bytes = read_bytes(&path)?;
            let source = match Source::from_bytes(path.display().to_string(), &bytes) {
                Ok(source) => source,
                Err(problem) => {
                    problems.push(*problem);
                    continue;
                }
            };
            let (objects, told) = files.listing.read(&source);
            files.texts.insert(source.name, source.text);
            problems.extend(told);
            for object in objects {
                let found = files.take(&object.value);
                problems.extend(found.into_iter().map(|it| object.problem(it)));
            }
        }
        if problems.iter().any(|it| it.severity == Severity::Error) {
            return Err(files.failure(&problems));
        }
        talk.text.push_str(&files.shown(&problems));
        if !files.listing.ignored.is_empty() {
            let kinds = files.listing.ignored.iter().map(|(kind, count)| format!("{count} {kind}"));
            let kinds: Vec<String> = kinds.collect();
            talk.notes
                .push(format!("ignored, as they do not say where pods fit: {}", kinds.join(", ")));
        }
        Ok(files)
    }

    fn take(&mut self, object: &Object) -> Vec<Finding> {
        match object {
            Object::Pool(wire) => {
                if self.pools.iter().any(|it| it.pool.name == wire.metadata.name) {
                    let message = format!("NodePool `{}` was read before", wire.metadata.name);
                    return vec![Finding::error("metadata.name", message)];
                }
                match pool(wire) {
                    Ok(pool) => self.pools.push(PoolFile { wire: wire.clone(), pool }),
                    Err(found) => return found,
                }
            }
            Object::Class(wire) => {
                let (settings, told) = match offered(wire) {
                    Ok(read) => read,
                    Err(found) => return found,
                };
                let class = ClassFile { wire: wire.clone(), settings };
                if self.classes.insert(class_name(wire), class).is_some() {
                    let message = format!("EC2NodeClass `{}` was read before", wire.metadata.name);
                    return vec![Finding::error("metadata.name", message)];
                }
                return told;
            }
            Object::Claim(wire) => {
                if self.claims.iter().any(|it| it.metadata.name == wire.metadata.name) {
                    let message = format!("NodeClaim `{}` was read before", wire.metadata.name);
                    return vec![Finding::error("metadata.name", message)];
                }
                self.claims.push(wire.clone());
            }
            // Which image boots, and when nodes may go, does not decide what fits.
            Object::Policy(_)
            | Object::Quarantine(_)
            | Object::Budget(_)
            | Object::Replacement(_)
            | Object::Ledger(_)
            | Object::Image(_) => {}
        }
        Vec::new()
    }

    pub(super) fn bare_pools(&self) -> Vec<Pool> {
        self.pools.iter().map(|it| it.pool.clone()).collect()
    }

    fn shown(&self, problems: &[Problem]) -> String {
        let text = |it: &Problem| self.texts.get(&it.file).map(String::as_str).unwrap_or_default();
        problems.iter().map(|it| show(it, text(it))).collect()
    }

    pub(super) fn failure(&self, problems: &[Problem]) -> Failure {
        let mut problems = problems.to_vec();
        problems.sort_by(|left, right| {
            (&left.file, left.line, left.column).cmp(&(&right.file, right.line, right.column))
        });
        let mut talk = self.shown(&problems);
        let errors = problems.iter().filter(|it| it.severity == Severity::Error).count();
        let noun = if errors == 1 { "error" } else { "errors" };
        let _ = writeln!(talk, "{errors} {noun}; nothing was packed");
        Failure { talk, exit: Exit::Failed }
    }
}
