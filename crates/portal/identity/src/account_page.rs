//! The pages of one's own account: the password, and one-time codes. Plain as the page of the sign-in, and in its frame.

use http::{Response, StatusCode};

use crate::page::{escape, hidden, whole};
use crate::provider::Call;
use crate::respond::{self, Body};
use crate::sign_in::{ENROL_SEED, NEW_CODE};

/// What the page of an account shows.
pub(crate) struct Account<'a> {
    /// Whose.
    pub(crate) user: &'a str,
    /// Shows that a form came from here.
    pub(crate) token: &'a str,
    /// Whether he signs in with a password at all.
    pub(crate) has_password: bool,
    /// Whether he has one-time codes.
    pub(crate) has_codes: bool,
    /// What was wrong with a form.
    pub(crate) problem: Option<&'a str>,
    /// What was done.
    pub(crate) done: Option<&'a str>,
}

/// The password of now. There may be several forms, and no two fields of a page have the same id.
fn password(id: &str) -> String {
    format!(
        "<label for=\"{id}\">Your password now</label>\n<input id=\"{id}\" name=\"password\" type=\"password\" \
         autocomplete=\"current-password\" maxlength=\"1024\" required>\n"
    )
}

/// The one-time code of now, for who has a seed.
fn code(id: &str, has_codes: bool) -> String {
    match has_codes {
        true => format!(
            "<label for=\"{id}\">One-time code now</label>\n<input id=\"{id}\" name=\"otp\" inputmode=\"numeric\" \
             autocomplete=\"one-time-code\" maxlength=\"8\" required>\n"
        ),
        false => String::new(),
    }
}

fn alert(problem: Option<&str>) -> String {
    problem
        .map(|it| format!("<p role=\"alert\" id=\"problem\">{}</p>\n", escape(it)))
        .unwrap_or_default()
}

/// A form of the account's page: what it does, what it asks for, and what its button says.
fn form(account: &Account<'_>, does: &str, fields: &str, button: &str) -> String {
    format!(
        "<form method=\"post\" action=\"account\">\n{}{fields}<button type=\"submit\">{button}</button>\n</form>\n",
        hidden(account.token, &[("do", does)]),
    )
}

/// One's own account.
pub(crate) fn account(call: &Call<'_>, status: StatusCode, account: &Account<'_>) -> Response<Body> {
    let done = account
        .done
        .map(|it| format!("<p role=\"status\">{}</p>\n", escape(it)))
        .unwrap_or_default();
    let forms = match account.has_password {
        false => {
            "<p>You sign in with another provider: it keeps your password, and asks you for codes.</p>\n"
                .to_owned()
        }
        true => forms(call, account),
    };
    let content = format!(
        "<p>You are signed in as <strong>{}</strong>.</p>\n{done}{}{forms}<p><a href=\"logout\">Sign out</a></p>\n",
        escape(account.user),
        alert(account.problem),
    );
    let title = format!("Your account at {}", call.title());
    respond::page(status, whole(&title, &content), None)
}

fn forms(call: &Call<'_>, account: &Account<'_>) -> String {
    let fields = format!(
        "<h2>Change your password</h2>\n{now}{code}<label for=\"new_password\">New password, of at least {least} \
         characters</label>\n<input id=\"new_password\" name=\"new_password\" type=\"password\" \
         autocomplete=\"new-password\" maxlength=\"1024\" required>\n<label for=\"repeated\">The new password \
         again</label>\n<input id=\"repeated\" name=\"repeated\" type=\"password\" autocomplete=\"new-password\" \
         maxlength=\"1024\" required>\n",
        now = password("password"),
        code = code("otp", account.has_codes),
        least = call.settings.password_min,
    );
    let change = form(account, "password", &fields, "Change the password");
    let what = match account.has_codes {
        false => "An app on your phone shows a code that is asked for besides the password.",
        true => "One-time codes are set up. Set them up anew for another phone.",
    };
    let begin = format!("<h2>One-time codes</h2>\n<p>{what}</p>\n");
    let begin = form(account, "enrol", &begin, "Set up one-time codes");
    let end = match account.has_codes && !call.settings.require_totp {
        true => {
            let fields = format!(
                "<h2>Go without one-time codes</h2>\n{}{}",
                password("password-to-remove"),
                code("otp-to-remove", true)
            );
            form(account, "remove", &fields, "Remove one-time codes")
        }
        false => String::new(),
    };
    format!("{change}{begin}{end}")
}

/// What somebody is shown who sets one-time codes up.
pub(crate) struct Enrolment<'a> {
    /// Where the form is sent.
    pub(crate) action: &'a str,
    /// Shows that it came from here.
    pub(crate) token: &'a str,
    /// What is sent along.
    pub(crate) hidden: &'a [(&'a str, &'a str)],
    /// The seed, for an app.
    pub(crate) seed: &'a str,
    /// The same as an address that apps read.
    pub(crate) uri: &'a str,
    /// Whether he has codes already, and must show one.
    pub(crate) has_codes: bool,
    /// What was wrong before.
    pub(crate) problem: Option<&'a str>,
    /// Where an answer may lead.
    pub(crate) leads_to: Option<&'a str>,
}

/// Sets one-time codes up: the app is told the seed, and shows by a code that it has it.
pub(crate) fn enrol(call: &Call<'_>, status: StatusCode, asked: &Enrolment<'_>) -> Response<Body> {
    let pairs: Vec<(&str, &str)> = asked
        .hidden
        .iter()
        .copied()
        .chain([(ENROL_SEED, asked.seed)])
        .collect();
    // In groups of four, as people type it.
    let groups: Vec<String> = asked
        .seed
        .as_bytes()
        .chunks(4)
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    let content = format!(
        "{problem}<p>Tell this key to an authenticator app, or <a href=\"{uri}\">open it in the app</a> on this device:</p>\n<p \
         class=\"code\">{seed}</p>\n<form method=\"post\" action=\"{action}\">\n{hidden}{now}{code}<label \
         for=\"{NEW_CODE}\">The code that the app shows now</label>\n<input id=\"{NEW_CODE}\" name=\"{NEW_CODE}\" \
         inputmode=\"numeric\" autocomplete=\"one-time-code\" maxlength=\"8\" required>\n<button type=\"submit\">Set up \
         one-time codes</button>\n</form>\n",
        problem = alert(asked.problem),
        uri = escape(asked.uri),
        seed = groups.join(" "),
        action = escape(asked.action),
        hidden = hidden(asked.token, &pairs),
        now = password("password"),
        code = code("otp", asked.has_codes),
    );
    let title = format!("One-time codes for {}", call.title());
    respond::page(status, whole(&title, &content), asked.leads_to)
}
