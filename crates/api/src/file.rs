//! What do these files ask for?
//!
//! `text → objects + problems`
//!
//! Strict, as `kubectl apply` is: an unknown field is an error, because a misspelt `owner` that is
//! silently dropped would select everybody's images. Every problem of a file is told at once, with
//! its line, and a broken document does not hide the others.

use std::sync::Arc;

use serde::{Serialize, Serializer, de::DeserializeOwned};

use crate::{
    awsimage::{self, AwsImage},
    disruptionledger::{self, DisruptionLedger},
    ec2nodeclass::{self, EC2NodeClass},
    imagepolicy::{self, ImagePolicy},
    imagequarantine::{self, ImageQuarantine},
    nodeclaim::{self, NodeClaim},
    nodedisruptionbudget::{self, NodeDisruptionBudget},
    nodepool::{self, NodePool},
    problem::{Finding, Place, Problem, Severity, nearest, quoted},
    replacement::{self, Replacement},
    v1beta1,
};

use self::tree::{Content, NodeId, Tree};

pub mod builtin;
pub(crate) mod decode;
mod parts;
pub(crate) mod path;
pub mod raw;
mod scalar;
mod tree;

/// Four times what etcd takes for one object.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How the kind of a list ends.
const LIST: &str = "List";
/// Who made more mistakes than this made one, many times.
const PROBLEMS_MAX: usize = 100;

/// One file, or what came on standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As the user called it.
    pub name: String,
    pub text: String,
}

impl Source {
    /// Files are bytes; ours must be UTF-8. A byte order mark is dropped.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Box<Problem>> {
        let name = name.into();
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text: text.to_owned() }),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line_start = good.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
                let before = String::from_utf8_lossy(&good[line_start..]);
                let place = Place {
                    line: 1 + good.split(|it| *it == b'\n').count().saturating_sub(1),
                    column: 1 + before.chars().count(),
                    span: Some(good.len()..good.len()),
                };
                let finding =
                    Finding::error("", "is not UTF-8 text").hint("save the file as UTF-8");
                Err(Box::new(Problem::new(&name, place, finding)))
            }
        }
    }
}

/// What may stand in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    Class(EC2NodeClass),
    Pool(NodePool),
    Claim(NodeClaim),
    Policy(ImagePolicy),
    Quarantine(ImageQuarantine),
    Budget(NodeDisruptionBudget),
    Replacement(Replacement),
    Ledger(DisruptionLedger),
    Image(AwsImage),
}

impl Object {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Class(_) => ec2nodeclass::KIND,
            Self::Pool(_) => nodepool::KIND,
            Self::Claim(_) => nodeclaim::KIND,
            Self::Policy(_) => imagepolicy::KIND,
            Self::Quarantine(_) => imagequarantine::KIND,
            Self::Budget(_) => nodedisruptionbudget::KIND,
            Self::Replacement(_) => replacement::KIND,
            Self::Ledger(_) => disruptionledger::KIND,
            Self::Image(_) => awsimage::KIND,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Class(it) => &it.metadata.name,
            Self::Pool(it) => &it.metadata.name,
            Self::Claim(it) => &it.metadata.name,
            Self::Policy(it) => &it.metadata.name,
            Self::Quarantine(it) => &it.metadata.name,
            Self::Budget(it) => &it.metadata.name,
            Self::Replacement(it) => &it.metadata.name,
            Self::Ledger(it) => &it.metadata.name,
            Self::Image(it) => &it.metadata.name,
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Class(it) => it.serialize(serializer),
            Self::Pool(it) => it.serialize(serializer),
            Self::Claim(it) => it.serialize(serializer),
            Self::Policy(it) => it.serialize(serializer),
            Self::Quarantine(it) => it.serialize(serializer),
            Self::Budget(it) => it.serialize(serializer),
            Self::Replacement(it) => it.serialize(serializer),
            Self::Ledger(it) => it.serialize(serializer),
            Self::Image(it) => it.serialize(serializer),
        }
    }
}

/// A value that remembers where it was written.
#[derive(Debug, Clone)]
pub struct Located<T> {
    pub value: T,
    /// As the user called it.
    pub file: String,
    tree: Arc<Tree>,
    root: NodeId,
    /// How the object is reached in its document: empty, or `items[3]`.
    prefix: String,
    moves: &'static [(&'static str, &'static str)],
}

impl<T> Located<T> {
    /// Where `field` stands, or the nearest thing around it that was written.
    pub fn locate(&self, field: &str) -> Place {
        // What v1 says elsewhere than v1beta1 was not written where v1 says it.
        let moved = self.moves.iter().find_map(|(to, from)| {
            let rest = field.strip_prefix(to)?;
            (self.tree.locate(self.root, to) == self.tree.locate(self.root, parent(to)))
                .then(|| format!("{from}{}", if rest.starts_with('[') { "" } else { rest }))
        });
        self.tree.locate(self.root, moved.as_deref().unwrap_or(field))
    }

    /// Whether `field` stands in the file.
    pub fn written(&self, field: &str) -> bool {
        let parent = parent(field);
        !field.is_empty()
            && self.tree.locate(self.root, field) != self.tree.locate(self.root, parent)
    }

    /// A finding about this value, with its place.
    pub fn problem(&self, finding: Finding) -> Problem {
        let place = self.locate(&finding.field);
        let field = under(&self.prefix, finding.field);
        Problem::new(&self.file, place, Finding { field, ..finding })
    }

    /// What stands in this place, read as another type. Each finding has its own place.
    pub(crate) fn decode<U: DeserializeOwned>(&self) -> (Option<U>, Vec<(Place, Finding)>) {
        decode::decode(&self.tree, self.root)
    }

    /// The same without the text around it, of which no more will be said: every field is where the object is.
    pub(crate) fn without_text(self) -> Self {
        let tree = Tree::bare(self.tree.node(self.root).place.clone());
        Self { root: tree.root, tree: Arc::new(tree), ..self }
    }

    /// Another value in the same place: an object's part, or what was made of it.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Located<U> {
        let Self { value, file, tree, root, prefix, moves } = self;
        Located { value: make(value), file, tree, root, prefix, moves }
    }
}

/// Who reads what is none of ours.
pub(crate) trait Others {
    /// Told of every such object, and of everything that is wrong with it.
    fn read(&mut self, kind: &str, api_version: &str, at: Located<()>) -> Vec<(Place, Finding)>;
}

/// The objects that are well formed, in the order of the text, and everything there is to say.
pub fn read(source: &Source) -> (Vec<Located<Object>>, Vec<Problem>) {
    read_up_to(source, FILE_BYTES_MAX, None)
}

/// The same as the API server takes it from people: what they write as `status` is dropped, so nothing
/// is wrong with it.
pub fn read_as_applied(source: &Source) -> (Vec<Located<Object>>, Vec<Problem>) {
    read_leaving_out(&["status"], source, FILE_BYTES_MAX, None)
}

/// Fields of our kinds that there are not, as `kubectl apply` refuses them before it sends anything.
pub fn unknown_fields(source: &Source) -> Vec<Problem> {
    let (_, mut problems) = read_as_applied(source);
    problems.retain(|it| it.message == decode::UNKNOWN_FIELD && it.severity == Severity::Error);
    problems
}

/// What [`read`] does for a longer file, in which others may find objects of theirs.
pub(crate) fn read_up_to<'s>(
    source: &'s Source,
    bytes_max: usize,
    others: Option<&'s mut dyn Others>,
) -> (Vec<Located<Object>>, Vec<Problem>) {
    read_leaving_out(&[], source, bytes_max, others)
}

fn read_leaving_out<'s>(
    unread: &'static [&'static str],
    source: &'s Source,
    bytes_max: usize,
    others: Option<&'s mut dyn Others>,
) -> (Vec<Located<Object>>, Vec<Problem>) {
    let mut reader = Reader {
        source,
        unread,
        others,
        objects: Vec::new(),
        problems: Vec::new(),
        serious: 0,
        ignored: 0,
    };
    if source.text.len() > bytes_max {
        let message = format!(
            "is {} bytes long, more than the {} MiB that a file may have",
            source.text.len(),
            bytes_max / 1024 / 1024
        );
        reader.tell(Place::START, Finding::error("", message).hint("split the file"));
    } else {
        let items_apart = reader.others.is_some();
        tree::pieces(&source.text, items_apart, &mut |piece| {
            match piece {
                tree::Piece::Item { tree, index } => {
                    let (root, prefix) = (tree.root, format!("items[{index}]"));
                    reader.object(&Arc::new(tree), root, &prefix);
                }
                tree::Piece::Document(document) => reader.document(document),
            }
            !reader.full()
        });
    }
    reader.finish()
}

/// Where `field` stands in a text of one document, such as an answer of AWS; or the nearest thing around
/// it. Nothing where the text cannot be read.
pub(crate) fn locate(text: &str, field: &str) -> Option<Place> {
    let tree = tree::documents(text).into_iter().next()?.tree?;
    Some(tree.locate(tree.root, field))
}

struct Reader<'s> {
    source: &'s Source,
    /// Fields of every object that are as if they were not there.
    unread: &'static [&'static str],
    others: Option<&'s mut dyn Others>,
    objects: Vec<Located<Object>>,
    problems: Vec<Problem>,
    /// Problems that are more than notes.
    serious: usize,
    /// Notes: most of a large chart is not for us, and nobody wants to read that.
    ignored: usize,
}

/// What a document's `apiVersion` and `kind` say it is.
enum Claim {
    Class { beta: bool },
    Pool { beta: bool },
    Machine,
    Policy,
    Quarantine,
    Budget,
    Replacement,
    Ledger,
    Image,
}

/// Our kinds and the versions in which they are read.
const KINDS: [(&str, &[&str]); 9] = [
    (
        ec2nodeclass::KIND,
        &[ec2nodeclass::KARPENTER_V1, ec2nodeclass::NODEMOLT_V1ALPHA1, v1beta1::CLASS],
    ),
    (nodepool::KIND, &[nodepool::KARPENTER_V1, v1beta1::POOL]),
    (nodeclaim::KIND, &[nodeclaim::KARPENTER_V1]),
    (imagepolicy::KIND, &[imagepolicy::NODEMOLT_V1ALPHA1]),
    (imagequarantine::KIND, &[imagequarantine::NODEMOLT_V1ALPHA1]),
    (nodedisruptionbudget::KIND, &[nodedisruptionbudget::KARPENTER_V1ALPHA1]),
    (replacement::KIND, &[replacement::NODEMOLT_V1ALPHA1]),
    (disruptionledger::KIND, &[disruptionledger::NODEMOLT_V1ALPHA1]),
    (awsimage::KIND, &awsimage::API_VERSIONS),
];

impl Reader<'_> {
    fn finish(mut self) -> (Vec<Located<Object>>, Vec<Problem>) {
        if self.full() {
            let mut kept = 0;
            self.problems.retain(|it| {
                kept += usize::from(it.severity != Severity::Note);
                it.severity == Severity::Note || kept <= PROBLEMS_MAX
            });
            let message =
                format!("has more than {PROBLEMS_MAX} problems, the others are not shown");
            self.tell(Place::START, Finding::error("", message));
        }
        if self.ignored > PROBLEMS_MAX {
            let message = format!("{} more objects are ignored", self.ignored - PROBLEMS_MAX);
            let problem = Problem::new(&self.source.name, Place::START, Finding::note("", message));
            self.problems.push(problem);
        }
        (self.objects, self.problems)
    }

    fn full(&self) -> bool {
        self.serious > PROBLEMS_MAX
    }

    fn tell(&mut self, place: Place, finding: Finding) {
        self.push(Problem::new(&self.source.name, place, finding));
    }

    fn push(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error | Severity::Warning => self.serious += 1,
            Severity::Note => self.ignored += 1,
        }
        if problem.severity != Severity::Note || self.ignored <= PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn document(&mut self, document: tree::Document) {
        let tree::Document { tree, defects } = document;
        let told = self.problems.len();
        let read = self.objects.len();
        let ours = tree.is_none_or(|tree| {
            let tree = Arc::new(tree);
            let root = tree.root;
            let handed_out = tree.handed_out > 0;
            if handed_out && !tree.text(root, "kind").is_some_and(|it| it.ends_with(LIST)) {
                let finding = Finding::error("kind", "there are items, and this is no List");
                self.tell(tree.locate(root, "kind"), finding.hint("write `kind: List`"));
                return true;
            }
            // An empty document is what stands between two `---`.
            tree.node(root).content != Content::Null && self.object(&tree, root, "") || handed_out
        });
        // What is wrong with someone else's YAML is not ours to say.
        if ours && !defects.is_empty() {
            self.objects.truncate(read);
            for (place, finding) in defects {
                self.tell(place, finding);
            }
            self.problems[told..].sort_by_key(|it| (it.line, it.column));
        }
    }

    /// Reads one object or list; false if it is none of ours.
    fn object(&mut self, tree: &Arc<Tree>, root: NodeId, prefix: &str) -> bool {
        let place = &tree.node(root).place;
        if !matches!(tree.node(root).content, Content::Map(_)) {
            let finding = Finding::error(prefix, "expected an object with apiVersion and kind");
            self.tell(place.clone(), finding);
            return true;
        }
        let kind = tree.text(root, "kind");
        if let Some(items) = tree.entry(root, "items")
            && let Some(of) = kind.and_then(|it| it.strip_suffix(LIST))
            && (of.is_empty() || self.others.is_some() || KINDS.iter().any(|(kind, _)| *kind == of))
        {
            let before = if root == tree.root { tree.handed_out } else { 0 };
            return self.list(tree, items.value, &under(prefix, "items".to_owned()), before);
        }
        let (Some(kind), Some(api_version)) = (kind, tree.text(root, "apiVersion")) else {
            for field in ["apiVersion", "kind"] {
                if tree.text(root, field).is_some() {
                    continue;
                }
                let entry = tree.entry(root, field);
                let said = if entry.is_some() { "must be a string" } else { "is missing" };
                let finding = Finding::error(under(prefix, field.to_owned()), said).hint(
                    "for example `apiVersion: karpenter.k8s.aws/v1` and `kind: EC2NodeClass`",
                );
                self.tell(entry.map_or(place, |it| &it.place).clone(), finding);
            }
            return true;
        };
        if !KINDS.iter().any(|(it, _)| *it == kind) && self.others.is_some() {
            let foreign = foreign(kind, api_version);
            if foreign.severity == Severity::Error {
                let field = under(prefix, foreign.field.clone());
                self.tell(tree.locate(root, &foreign.field), Finding { field, ..foreign });
                return true;
            }
            self.offer(kind, api_version, self.at(tree, root, prefix, &[]));
            return true;
        }
        match claim(kind, api_version) {
            Ok(claim) => {
                self.claimed(tree, root, prefix, &claim);
                true
            }
            Err(finding) => {
                let place = tree.locate(root, &finding.field);
                let ours = finding.severity == Severity::Error;
                let field = under(prefix, finding.field.clone());
                self.tell(place, Finding { field, ..finding });
                ours
            }
        }
    }

    /// `before` items were read by themselves.
    fn list(&mut self, tree: &Arc<Tree>, items: NodeId, field: &str, before: usize) -> bool {
        let node = tree.node(items);
        let Content::List(items) = &node.content else {
            if node.content != Content::Null {
                self.tell(node.place.clone(), Finding::error(field, "expected a list"));
            }
            return true;
        };
        let mut ours = false;
        for (index, item) in items.iter().enumerate() {
            if self.full() {
                break;
            }
            ours |= self.object(tree, *item, &format!("{field}[{}]", before + index));
        }
        ours
    }

    fn at(
        &self,
        tree: &Arc<Tree>,
        root: NodeId,
        prefix: &str,
        moves: &'static [(&'static str, &'static str)],
    ) -> Located<()> {
        Located {
            value: (),
            file: self.source.name.clone(),
            tree: Arc::clone(tree),
            root,
            prefix: prefix.to_owned(),
            moves,
        }
    }

    fn offer(&mut self, kind: &str, api_version: &str, at: Located<()>) {
        let prefix = at.prefix.clone();
        let found = self.others.as_mut().map(|it| it.read(kind, api_version, at));
        for (place, finding) in found.into_iter().flatten() {
            self.tell(place, Finding { field: under(&prefix, finding.field), ..finding });
        }
    }

    fn claimed(&mut self, tree: &Arc<Tree>, root: NodeId, prefix: &str, claim: &Claim) {
        let at = |moves| self.at(tree, root, prefix, moves);
        match claim {
            Claim::Class { beta: false } => {
                self.keep(at(&[]), |it| (it, vec![]), ec2nodeclass::check, Object::Class);
            }
            Claim::Class { beta: true } => self.keep(
                at(&v1beta1::CLASS_MOVES),
                |it| (v1beta1::class(it), vec![]),
                ec2nodeclass::check,
                Object::Class,
            ),
            Claim::Pool { beta: false } => {
                self.keep(at(&[]), |it| (it, vec![]), nodepool::check, Object::Pool);
            }
            Claim::Pool { beta: true } => {
                self.keep(at(&v1beta1::POOL_MOVES), v1beta1::pool, nodepool::check, Object::Pool);
            }
            Claim::Machine => {
                self.keep(at(&[]), |it| (it, vec![]), nodeclaim::check, Object::Claim);
            }
            Claim::Policy => {
                self.keep(at(&[]), |it| (it, vec![]), imagepolicy::check, Object::Policy);
            }
            Claim::Quarantine => {
                self.keep(at(&[]), |it| (it, vec![]), imagequarantine::check, Object::Quarantine);
            }
            Claim::Budget => {
                self.keep(at(&[]), |it| (it, vec![]), nodedisruptionbudget::check, Object::Budget);
            }
            Claim::Replacement => {
                self.keep(at(&[]), |it| (it, vec![]), replacement::check, Object::Replacement);
            }
            Claim::Ledger => {
                self.keep(at(&[]), |it| (it, vec![]), disruptionledger::check, Object::Ledger);
            }
            Claim::Image => {
                self.keep(at(&[]), |it| (it, vec![]), awsimage::check, Object::Image);
            }
        }
    }

    /// Wire → today's version → checked → kept, unless something is wrong on the way.
    fn keep<Wire: DeserializeOwned, Today>(
        &mut self,
        at: Located<()>,
        convert: impl FnOnce(Wire) -> (Today, Vec<Finding>),
        check: impl FnOnce(&Today) -> Vec<Finding>,
        wrap: impl FnOnce(Today) -> Object,
    ) {
        let told = self.problems.len();
        let (wire, found) = decode::decode_without::<Wire>(self.unread, &at.tree, at.root);
        for (place, finding) in found {
            let field = under(&at.prefix, finding.field);
            self.tell(place, Finding { field, ..finding });
        }
        // What is missing because it is misspelt need not be called missing, too.
        let sound = self.problems[told..].iter().all(|it| it.severity != Severity::Error);
        let object = wire.filter(|_| sound).map(convert).map(|(today, mut found)| {
            found.extend(check(&today));
            for finding in found {
                self.push(at.problem(finding));
            }
            today
        });
        let told = &mut self.problems[told..];
        told.sort_by_key(|it| (it.line, it.column));
        if let Some(object) = object
            && told.iter().all(|it| it.severity != Severity::Error)
        {
            self.objects.push(at.map(|()| wrap(object)));
        }
    }
}

fn claim(kind: &str, api_version: &str) -> Result<Claim, Finding> {
    let Some((_, known)) = KINDS.iter().find(|(it, _)| *it == kind) else {
        return Err(foreign(kind, api_version));
    };
    // People do not write claims. Those of another version come out of old clusters.
    if kind == nodeclaim::KIND && !known.contains(&api_version) {
        return Err(foreign(kind, api_version));
    }
    if !known.contains(&api_version) {
        let message =
            format!("{} is not a version of {kind} that is read here", quoted(api_version));
        let hint = format!("write {}", known.join(" or "));
        return Err(Finding::error("apiVersion", message).hint(hint));
    }
    Ok(match kind {
        ec2nodeclass::KIND => Claim::Class { beta: api_version == v1beta1::CLASS },
        nodepool::KIND => Claim::Pool { beta: api_version == v1beta1::POOL },
        nodeclaim::KIND => Claim::Machine,
        imagepolicy::KIND => Claim::Policy,
        nodedisruptionbudget::KIND => Claim::Budget,
        replacement::KIND => Claim::Replacement,
        disruptionledger::KIND => Claim::Ledger,
        awsimage::KIND => Claim::Image,
        _ => Claim::Quarantine,
    })
}

/// A kind that is not read: somebody else's, or one of ours misspelt.
fn foreign(kind: &str, api_version: &str) -> Finding {
    let group = api_version.split('/').next().unwrap_or_default();
    let read_here = KINDS.map(|(kind, _)| kind);
    if KINDS.iter().any(|(_, known)| known.iter().any(|it| it.split('/').next() == Some(group)))
        && let Some(near) = nearest(kind, &read_here)
        && near != kind
    {
        let message = format!("{} is not a kind of {group}", quoted(kind));
        return Finding::error("kind", message).hint(format!("did you mean `{near}`?"));
    }
    let message = format!("ignored: {} is not read here", quoted(kind));
    Finding::note("kind", message).hint(format!("read are {}", read_here.join(", ")))
}

fn under(prefix: &str, field: String) -> String {
    match (prefix, field.as_str()) {
        ("", _) => field,
        (_, "") => prefix.to_owned(),
        (_, inside) if inside.starts_with('[') => format!("{prefix}{inside}"),
        (_, inside) => format!("{prefix}.{inside}"),
    }
}

fn parent(field: &str) -> &str {
    field.rsplit_once('.').map_or("", |(parent, _)| parent)
}
