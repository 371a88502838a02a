//! What answers say that `object_store` leaves out of its errors: the status, the wait that is asked for, the region of a bucket.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use super::http::{is_of_a_certificate, wait_asked};
use crate::checksum::Checksum;
use crate::trouble::{Trouble, What};

#[derive(Default)]
struct Answered {
    status: Option<u16>,
    wait: Option<Duration>,
    region: Option<String>,
}

tokio::task_local! {
    /// The last answer to this request.
    static ANSWERED: RefCell<Answered>;
}

/// What `object_store` says of an answer that is no range, or does not say which.
const NO_RANGES: [&str; 3] = [
    "Received non-partial response when range requested",
    "Content-Range header not present in partial response",
    "Failed to parse value for CONTENT_RANGE",
];

/// What `reqwest` says where redirects do not end.
const IN_A_CIRCLE: &str = "too many redirects";

/// Notes what each answer says before `object_store` turns it into an error.
#[derive(Clone, Debug, Default)]
pub(super) struct Noting(Arc<Mutex<Option<HttpClient>>>);

impl HttpConnector for Noting {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(Noted(ReqwestConnector::default().connect(options)?));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }
}

/// Gives the client that was made last, which is that of the store and not of its credentials: its connections are used again.
#[derive(Debug)]
pub(super) struct Again(pub(super) Noting);

impl HttpConnector for Again {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let made = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        made.map_or_else(|| self.0.connect(options), Ok)
    }
}

#[derive(Debug)]
struct Noted(HttpClient);

#[async_trait::async_trait]
impl HttpService for Noted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut answer = self.0.execute(request).await?;
        let header = |name| answer.headers().get(name)?.to_str().ok();
        let noted = Answered {
            status: Some(answer.status().as_u16()),
            wait: wait_asked(header("retry-after"), None),
            region: header("x-amz-bucket-region").map(str::to_string),
        };
        if let Some(checksum) = Checksum::of(answer.headers()) {
            answer.extensions_mut().insert(checksum);
        }
        // Outside of a request of ours, which credentials may be fetched in, nobody asks.
        let _ = ANSWERED.try_with(|answered| answered.replace(noted));
        Ok(answer)
    }
}

pub(super) async fn noted<T>(asked: impl Future<Output = object_store::Result<T>>) -> Result<T, Trouble> {
    let noted = async { asked.await.map_err(|e| trouble(&e, ANSWERED.with(|answered| answered.take()))) };
    ANSWERED.scope(RefCell::default(), noted).await
}

fn trouble(error: &object_store::Error, Answered { status, wait, region }: Answered) -> Trouble {
    use object_store::Error as Of;
    let said = in_words(error);
    let what = match error {
        Of::NotFound { .. } => What::NotFound,
        Of::AlreadyExists { .. } => What::Exists,
        Of::Precondition { .. } => What::Changed,
        Of::PermissionDenied { .. } | Of::Unauthenticated { .. } => What::Denied,
        Of::NotSupported { .. } => What::NoRanges,
        _ => match status {
            Some(status) if status >= 300 => {
                return Trouble { region, ..Trouble::of_status(status, said, wait) }.by_code();
            }
            _ if is_of_a_certificate(&said) || said.contains(IN_A_CIRCLE) => What::Lasting,
            _ if NO_RANGES.iter().any(|words| said.contains(words)) => What::NoRanges,
            _ => What::Passing(wait),
        },
    };
    Trouble { region, ..Trouble::new(what, said) }.by_code()
}

/// The innermost cause says most; what is around it repeats it.
pub(super) fn in_words(error: &object_store::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    let mut causes = vec![inner.to_string()];
    while let Some(cause) = inner.source() {
        inner = cause;
        causes.push(inner.to_string());
    }
    let mut said: Vec<String> = Vec::new();
    for cause in causes.into_iter().rev() {
        if !said.iter().any(|known| cause.contains(known.as_str()) || known.contains(&cause)) {
            said.push(cause);
        }
    }
    said.reverse();
    said.join(": ")
}
