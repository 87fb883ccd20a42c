//! How does a test write to the API server, and what does that answer?

use http::{Method, Request};
use kube::Client;
use nodemolt_rig::Rig;
use serde_json::Value;

/// One kind in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    /// For example `karpenter.sh/v1`.
    pub(super) group_version: String,
    pub(super) plural: String,
}

/// Whether a write stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Stays,
    /// Judged as if it stayed; nothing is stored.
    Dry,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) code: u16,
    pub(super) message: String,
    /// Fields and what is said of them.
    pub(super) causes: Vec<(String, String)>,
}

#[derive(Clone)]
pub(super) struct Server(Client);

impl Server {
    pub(super) async fn of(rig: &Rig) -> Self {
        Self(rig.client().await.unwrap())
    }

    pub(super) async fn create(
        &self,
        resource: &Resource,
        object: &Value,
        write: Write,
    ) -> Result<Value, Refused> {
        let path = format!("{}?{}", resource.path(), write.parameters());
        self.send(Method::POST, &path, Some(object)).await
    }

    /// Puts `object` in the place of what is there, or its status (`part` is `/status`) in the place of that one's.
    pub(super) async fn replace(
        &self,
        resource: &Resource,
        there: &Value,
        part: &str,
        object: &Value,
        write: Write,
    ) -> Result<Value, Refused> {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
        let path = format!("{}{part}?{}", resource.path_of(there), write.parameters());
        self.send(Method::PUT, &path, Some(&object)).await
    }

    pub(super) async fn delete(&self, resource: &Resource, there: &Value) {
        self.send(Method::DELETE, &resource.path_of(there), None).await.unwrap();
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.unwrap_or_else(|it| panic!("{path}: {it:?}"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refused> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json").body(body).unwrap();
        match self.0.request::<Value>(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => {
                let causes = status.details.iter().flat_map(|it| &it.causes);
                let causes = causes.map(|it| (it.field.clone(), it.message.clone())).collect();
                Err(Refused { code: status.code, message: status.message.clone(), causes })
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

impl Resource {
    /// The one that an object says it is of.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let group_version = object["apiVersion"].as_str()?;
        let kind = object["kind"].as_str()?;
        let (group, version) = group_version.split_once('/')?;
        let crd = nodemolt_api::crd::all()
            .into_iter()
            .find(|it| it.group == group && it.kind == kind)
            .map(|it| (it.definition)())?;
        let served = crd.spec.versions.iter().any(|it| it.served && it.name == version);
        let (group_version, plural) = (group_version.to_owned(), crd.spec.names.plural);
        served.then_some(Self { group_version, plural })
    }

    /// All kinds that we serve are cluster-scoped.
    pub(super) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group_version, self.plural)
    }

    pub(super) fn path_of(&self, object: &Value) -> String {
        format!("{}/{}", self.path(), object["metadata"]["name"].as_str().unwrap_or_default())
    }
}

impl Write {
    fn parameters(self) -> &'static str {
        match self {
            Self::Stays => "",
            Self::Dry => "dryRun=All",
        }
    }
}
