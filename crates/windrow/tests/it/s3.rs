//! A server of S3 on loopback: the folders below a root are its buckets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use windrow::format::Options;

const KEY: &str = "AKEY";
const SECRET: &str = "ASECRET";

/// What is done to a request, given its method and path.
type Faults = dyn Fn(&str, &str) -> bool + Send + Sync;

/// The service, but for requests that are to fail: they are denied.
#[derive(Clone)]
struct Failing {
    service: S3Service,
    faults: Arc<Mutex<Box<Faults>>>,
}

impl Service<Request<Incoming>> for Failing {
    type Response = s3s::HttpResponse;
    type Error = s3s::HttpError;
    type Future = <S3Service as Service<Request<Incoming>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        match faults(request.method().as_str(), request.uri().path()) {
            true => Box::pin(async {
                let mut denied = s3s::HttpResponse::new(s3s::Body::empty());
                *denied.status_mut() = hyper::StatusCode::FORBIDDEN;
                Ok(denied)
            }),
            false => Service::call(&self.service, request),
        }
    }
}

pub(crate) struct S3 {
    endpoint: String,
    faults: Arc<Mutex<Box<Faults>>>,
}

impl S3 {
    /// Serves until the test program ends.
    pub(crate) fn serve(root: &Path) -> S3 {
        let files = FileSystem::new(root).unwrap();
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let faults: Arc<Mutex<Box<Faults>>> = Arc::new(Mutex::new(Box::new(|_, _| false)));
        let service = Failing { service: service.build(), faults: faults.clone() };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let service = service.clone();
                    tokio::spawn(async move {
                        let server = Builder::new(TokioExecutor::new());
                        // A client that goes is no concern of the others.
                        let _ = server.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            });
        });
        S3 { endpoint: format!("http://{}", told.recv().unwrap()), faults }
    }

    /// From now on requests are denied that this says of, by method and path.
    pub(crate) fn deny(&self, faults: impl Fn(&str, &str) -> bool + Send + Sync + 'static) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(faults);
    }

    /// What a client needs to be let in.
    pub(crate) fn store_options(&self) -> BTreeMap<String, String> {
        [
            ("endpoint_url", self.endpoint.as_str()),
            ("access_key_id", KEY),
            ("secret_access_key", SECRET),
            ("region", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into()
    }

    pub(crate) fn options(&self) -> Options {
        Options { store_options: self.store_options(), cache_limit: Some(0), ..Options::default() }
    }
}
