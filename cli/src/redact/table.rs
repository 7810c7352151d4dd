//! Forms of the keys and tokens of vendors: prefix, length and alphabet, a row each.
//!
//! The list is of November 2026. The source of a row is a page on which the vendor documents such keys, where there is one; most
//! forms follow published sets of rules and were not compared with that page. `gitleaks` is
//! the rule of that name in <https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml> (MIT, July 2026).
//! Lengths are the minimum that the source gives, so that longer keys of the future are found.

use std::sync::LazyLock;

use super::scan::{Hit, Row, Rules};

pub(super) static KEYS: LazyLock<Rules> = LazyLock::new(|| Rules::new(ROWS, true));

const fn row(
    kind: &'static str,
    signs: &'static [&'static str],
    pattern: &'static str,
    accepts: fn(&Hit<'_>) -> bool,
) -> Row {
    Row { kind, signs, back: 0, pattern, accepts }
}

/// A row whose pattern begins `back` bytes before the sign.
const fn behind(
    back: usize,
    kind: &'static str,
    signs: &'static [&'static str],
    pattern: &'static str,
    accepts: fn(&Hit<'_>) -> bool,
) -> Row {
    Row { kind, signs, back, pattern, accepts }
}

/// Special forms come before general ones.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // RFC 7468; the end may be missing where a tool has cut its output.
    row("private-key", &["-----BEGIN "],
        r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|\z)", any),
    row("private-key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{58}", any), // gitleaks
    // AI: https://docs.claude.com/en/api/admin-api, https://openrouter.ai/docs/guides/features/guardrails/secret-formats.md
    row("anthropic-key", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{16,}", is_key),
    row("openai-key", &["sk-"], r"sk-[A-Za-z0-9_-]{20,256}", is_key), // gitleaks; OpenRouter and DeepSeek too
    row("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{40,}", any), // https://console.groq.com/docs/overview
    row("xai-key", &["xai-"], r"xai-[A-Za-z0-9_-]{40,}", is_key), // https://docs.x.ai/developers/quickstart.md
    row("perplexity-key", &["pplx-"], r"pplx-[A-Za-z0-9_-]{32,}", is_key), // gitleaks
    row("nvidia-key", &["nvapi-"], r"nvapi-[A-Za-z0-9_-]{40,}", any), // https://docs.nvidia.com/nemo/retriever/latest/extraction/api-keys/
    row("cerebras-key", &["csk-"], r"csk-[a-z0-9]{40,}", any), // https://inference-docs.cerebras.ai/quickstart
    row("tavily-key", &["tvly-"], r"tvly-[A-Za-z0-9_-]{28,}", is_key), // https://docs.tavily.com/documentation/quickstart
    row("together-key", &["tgp_v1_"], r"tgp_v1_[A-Za-z0-9_-]{40,}", any), // https://docs.together.ai/docs/api-keys-authentication
    behind(36, "deepl-key", &[":fx"], r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}:fx", is_exact), // https://developers.deepl.com/docs/getting-started/auth
    row("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{37}", any), // https://replicate.com/docs/topics/security/api-tokens
    row("huggingface-token", &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z0-9]{30,}", any), // https://huggingface.co/docs/hub/en/security-tokens
    row("langsmith-key", &["lsv2_"], r"lsv2_[A-Za-z0-9_-]{40,}", any), // https://docs.langchain.com/langsmith/create-account-api-key
    row("fireworks-key", &["fw_"], r"fw_[A-Za-z0-9]{24,}", any), // https://docs.fireworks.ai/getting-started/introduction
    row("elevenlabs-key", &["sk_"], r"sk_[a-f0-9]{32,}", any), // https://elevenlabs.io/docs/quickstart
    row("pinecone-key", &["pcsk_"], r"pcsk_[A-Za-z0-9_-]{50,}", any), // https://docs.pinecone.io/reference/api/authentication
    // Code: https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
    row("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}", any),
    // https://docs.gitlab.com/security/tokens/; gitleaks
    row("gitlab-token", &["glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "GR1348941"],
        r"(?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct)-|GR1348941)[A-Za-z0-9_.-]{20,}", is_key),
    row("atlassian-token", &["ATATT3", "ATCTT3", "ATSTT3", "ATBB"], r"AT(?:[ACS]TT3[A-Za-z0-9_=-]{60,}|BB[A-Za-z0-9]{24,})", any), // gitleaks; https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens
    row("linear-key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", any), // https://linear.app/developers/graphql
    row("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36,}", any), // https://github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format/
    row("pypi-token", &["pypi-"], r"pypi-[A-Za-z0-9_-]{50,}", any), // gitleaks
    row("rubygems-key", &["rubygems_"], r"rubygems_[a-f0-9]{48}", any), // https://guides.rubygems.org/rubygems-org-api/
    row("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_-]{20,}", any), // https://docs.docker.com/security/access-tokens/
    row("postman-key", &["PMAK-"], r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", any), // https://learning.postman.com/docs/developer/postman-api/authentication/
    row("sourcegraph-token", &["sgp_"], r"sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}", any), // gitleaks
    row("figma-token", &["figd_"], r"figd_[A-Za-z0-9_-]{20,}", is_key), // https://developers.figma.com/docs/rest-api/authentication/
    // Clouds: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    // The secret key of AWS has a rule only after its id: alone, it looks like any digest.
    row("aws-secret-key", &["AKIA", "ASIA"],
        r"(?:AKIA|ASIA)[A-Z0-9]{16}(?s:[^A-Za-z0-9/+]|[^A-Za-z0-9/+].{0,200}?[^A-Za-z0-9/+])(?P<secret>[A-Za-z0-9/+]{40})(?:\z|[^A-Za-z0-9/+=])", is_mixed),
    row("aws-access-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}", is_exact),
    row("aws-bedrock-key", &["ABSK"], r"ABSK[A-Za-z0-9+/]{109,269}={0,2}", any), // gitleaks
    // https://docs.cloud.google.com/docs/authentication/api-keys; https://developers.google.com/identity/protocols/oauth2
    row("google-key", &["AIza", "ya29.", "GOCSPX-", "1//0"],
        r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{40,}", any),
    behind(4, "azure-client-secret", &["Q~"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", any), // gitleaks
    row("alibaba-key-id", &["LTAI"], r"LTAI[A-Za-z0-9]{20}", is_exact), // gitleaks
    row("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[por]_v1_[a-f0-9]{64}", any), // https://docs.digitalocean.com/reference/api/create-personal-access-token/
    row("databricks-token", &["dapi"], r"dapi[a-f0-9]{32}(?:-[0-9])?", is_exact), // https://docs.databricks.com/en/dev-tools/auth/pat.html
    row("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,}", any), // https://developer.hashicorp.com/vault/docs/concepts/tokens
    behind(14, "terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", any), // https://developer.hashicorp.com/terraform/cloud-docs/api-docs
    row("pulumi-token", &["pul-"], r"pul-[a-f0-9]{40}", any), // https://www.pulumi.com/docs/administration/access-identity/access-tokens/
    row("doppler-token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], r"dp\.[psc][ta]\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}", any), // https://docs.doppler.com/docs/service-tokens
    row("fly-token", &["fo1_", "fm1a_", "fm1r_", "fm2_"], r"fo1_[A-Za-z0-9_-]{40,}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{43,}={0,3}", any), // https://fly.io/docs/security/tokens/
    row("heroku-key", &["HRKU-"], r"HRKU-[A-Za-z0-9_-]{36,}", any), // gitleaks
    row("netlify-token", &["nfp_"], r"nfp_[A-Za-z0-9]{36,}", any), // https://docs.netlify.com/api/get-started/
    // Data: https://supabase.com/docs/guides/api/api-keys.md, https://supabase.com/docs/guides/platform/personal-access-tokens
    row("supabase-key", &["sb_secret_", "sbp_"], r"sb_secret_[A-Za-z0-9_-]{22,}|sbp_[A-Za-z0-9_]{40,}", any),
    row("planetscale-token", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}", any), // https://planetscale.com/docs/concepts/service-tokens
    row("airtable-token", &["pat"], r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", any), // https://airtable.com/developers/web/api/authentication
    row("notion-token", &["ntn_", "secret_"], r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})", is_exact), // https://developers.notion.com/reference/authentication
    row("dropbox-token", &["sl."], r"sl\.[A-Za-z0-9_.-]{100,}", any), // https://www.dropbox.com/developers/documentation/http/documentation#auth
    // Messages: https://api.slack.com/authentication/token-types
    row("slack-token", &["xox", "xapp-", "https://hooks.slack.com/"],
        r"xox[a-z](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}|https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}", is_key),
    // https://discord.com/developers/docs: base64 of a number, of a time, of a digest; the signs begin the number.
    row("discord-token", &["MT", "Mj", "Mz", "MD", "ND", "NT", "Nj", "Nz", "OD", "OT"], r"[MNO][A-Za-z0-9_-]{22,30}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}", is_exact),
    row("discord-token", &["https://discord"], r"https://discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}", any),
    row("twilio-key", &["SK"], r"SK[0-9a-f]{32}", is_exact), // https://www.twilio.com/docs/iam/api-keys/key-resource-v1
    behind(11, "firebase-key", &[":APA91b"], r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}", any), // https://firebase.google.com/docs/cloud-messaging
    row("resend-key", &["re_"], r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}", is_digital), // https://resend.com/docs/api-reference/introduction
    row("sendgrid-key", &["SG."], r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", any), // https://docs.sendgrid.com/api-reference/how-to-use-the-sendgrid-v3-api/authentication
    row("mailgun-key", &["key-"], r"key-[a-f0-9]{32}", is_exact), // https://documentation.mailgun.com/docs/mailgun/api-reference/api-overview
    behind(32, "mailchimp-key", &["-us"], r"[a-f0-9]{32}-us[0-9]{1,2}", is_exact), // https://mailchimp.com/developer/marketing/docs/fundamentals/
    // Payment and monitoring: https://docs.stripe.com/api/authentication,
    // https://docs.stripe.com/webhooks#secure-webhook
    row("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{24,}={0,2}", any),
    row("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}", any), // https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens
    row("square-token", &["sq0atp-", "sq0csp-"], r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}", any), // https://developer.squareup.com/docs/build-basics/access-tokens
    row("facebook-token", &["EAA"], r"EAA[A-Za-z0-9]{80,}", any), // https://developers.facebook.com/docs/facebook-login/guides/access-tokens
    row("hubspot-token", &["pat-na", "pat-eu"], r"pat-(?:na|eu)[0-9]-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}", any), // https://developers.hubspot.com/docs/api/private-apps
    row("grafana-token", &["glsa_", "glc_"], r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3}", any), // https://grafana.com/docs/grafana-cloud/account-management/authentication-and-permissions/access-policies/
    row("sentry-token", &["sntrys_", "sntryu_"], r"sntry[su]_[A-Za-z0-9+/=_]{60,}", any), // https://docs.sentry.io/account/auth-tokens/
    row("newrelic-key", &["NRAK-"], r"NRAK-[A-Z0-9]{27}", any), // https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/
    // RFC 7519: two parts that begin with the base64 of `{"`, and a signature that may be empty.
    row("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}", any),
    // RFC 6265.
    row("cookie", &["Cookie:", "cookie:"], r#"[Cc]ookie:[ \t]{0,4}(?P<secret>[A-Za-z0-9_.-]{1,64}=[^\r\n"'\\]+)"#, any),
    // crypt(5); RFC 9106 (Argon2).
    row("password-hash", &["$1$", "$5$", "$6$", "$apr1$"], r"\$(?:[156]|apr1)\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,86}", any),
    row("password-hash", &["$2a$", "$2b$", "$2x$", "$2y$"], r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}", any),
    row("password-hash", &["$y$", "$gy$", "$7$"], r"\$(?:g?y|7)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}", any),
    row("password-hash", &["$argon2"], r"\$argon2(?:id|i|d)\$[a-z0-9=,$]{1,64}\$[A-Za-z0-9+/]{11,128}\$[A-Za-z0-9+/]{16,128}", any),
];

const fn any(_: &Hit<'_>) -> bool {
    true
}

/// Whether the key is random rather than words with hyphens between them.
fn is_key(hit: &Hit<'_>) -> bool {
    has_digit(hit.secret.get(4..).unwrap_or_default()) || has_long_run(hit.secret)
}

/// Whether the key has digits: a name in code of this form has none.
fn is_digital(hit: &Hit<'_>) -> bool {
    has_digit(hit.secret)
}

pub(super) fn has_digit(secret: &str) -> bool {
    secret.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a run of letters and digits is longer than a word.
pub(super) fn has_long_run(secret: &str) -> bool {
    secret.split(|one: char| !one.is_ascii_alphanumeric()).any(|run| run.len() >= WORD_BYTES)
}

/// Minimum length of a run that is no word.
const WORD_BYTES: usize = 20;

/// Whether no more letters or digits follow: these keys have a fixed length.
pub(super) fn is_exact(hit: &Hit<'_>) -> bool {
    !hit.after.starts_with(|next: char| next.is_ascii_alphanumeric())
}

/// Whether the secret is no digest in hexadecimal digits, and no path.
fn is_mixed(hit: &Hit<'_>) -> bool {
    let has = |kind: fn(&u8) -> bool| hit.secret.bytes().any(|byte| kind(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}
