//! Who may approve and sign certificates, and what nobody may ask for.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use super::{Attributes, Context, Operation, Outcome, Plugin};
use crate::{status::ApiError, validation::read::Read};

const GROUP: &str = "certificates.k8s.io";
const KIND: &str = "CertificateSigningRequest";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Whether a user has a verb on a signer, or on all signers of its domain.
fn may(context: &Context<'_>, verb: &str, signer: &str) -> bool {
    let allows = |name: &str| context.access.allows(verb, GROUP, "signers", name);
    let domain = signer.split('/').next().unwrap_or_default();
    allows(signer) || allows(&format!("{domain}/*"))
}

pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        let approves = request.group == GROUP
            && request.kind == KIND
            && request.subresource == "approval"
            && request.operation == Operation::Update;
        if !approves {
            return Ok(());
        }
        let signer = request.old()["spec"].text("signerName");
        if may(context, "approve", signer) {
            return Ok(());
        }
        Err(request.refuse(format!(
            "user not permitted to approve requests with signerName {signer:?}"
        )))
    }
}

pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        let status = request.group == GROUP
            && request.kind == KIND
            && request.subresource == "status"
            && request.operation == Operation::Update;
        let signs = || {
            let of = |object: &Value, field: &str| object["status"][field].clone();
            ["certificate", "conditions"]
                .iter()
                .any(|field| of(&request.object, field) != of(request.old(), field))
        };
        if !status || !signs() {
            return Ok(());
        }
        let signer = request.old()["spec"].text("signerName");
        if may(context, "sign", signer) {
            return Ok(());
        }
        Err(request.refuse(format!(
            "user not permitted to sign requests with signerName {signer:?}"
        )))
    }
}

pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn validate(
        &self,
        request: &Attributes,
        _: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        let spec = &request.object["spec"];
        if !request.creates(GROUP, KIND) || spec.text("signerName") != CLIENT_SIGNER {
            return Ok(());
        }
        let groups = organizations(spec.text("request"))
            .ok_or_else(|| request.refuse("unable to parse CSR to validate its subject"))?;
        if groups.iter().any(|group| group == "system:masters") {
            return Err(request.refuse(format!(
                "use of {CLIENT_SIGNER} signer with system:masters group is not allowed"
            )));
        }
        Ok(())
    }
}

/// The organizations in the subject of a request, which become groups.
fn organizations(text: &str) -> Option<Vec<String>> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&bytes).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents).ok()?;
    let subject = &request.certification_request_info.subject;
    subject
        .iter_organization()
        .map(|each| each.as_str().map(str::to_owned).ok())
        .collect()
}
