//! The pages: plain HTML that needs no script, can be read aloud and typed through. Every value of a stranger is escaped.

use http::{Response, StatusCode};

use crate::look;
pub(crate) use crate::look::{STYLE, escape};
use crate::provider::Call;
use crate::respond::{self, Body};

/// Where the style is.
pub(crate) const STYLE_PATH: &str = "/style.css";

pub(crate) fn whole(title: &str, content: &str) -> String {
    look::page(title, STYLE_PATH, content)
}

/// One sentence.
pub(crate) fn tell(call: &Call<'_>, status: StatusCode, sentence: &str) -> Response<Body> {
    let content = format!("<p role=\"alert\">{}</p>\n", escape(sentence));
    respond::page(status, whole(call.title(), &content), None)
}

/// Why somebody who comes from another provider is not signed in, what an administrator can do about it, and where he can begin again.
pub(crate) fn not_signed_in(
    call: &Call<'_>,
    status: StatusCode,
    sentence: &str,
    remedy: Option<&str>,
    again: Option<&str>,
) -> Response<Body> {
    let remedy = remedy
        .map(|it| format!("<p>For an administrator:</p>\n<pre>{}</pre>\n", escape(it)))
        .unwrap_or_default();
    let again = again
        .map(|it| format!("<p><a href=\"{}\">Begin again</a></p>\n", escape(it)))
        .unwrap_or_default();
    let content = format!("<p role=\"alert\">{}</p>\n{remedy}{again}", escape(sentence));
    respond::page(status, whole(call.title(), &content), None)
}

/// There is nothing here.
pub(crate) fn not_found() -> Response<Body> {
    let content = "<p>There is no such realm or page here. A realm is an organisation: \
                   <code>/realms/NAME/.well-known/openid-configuration</code> describes it.</p>\n";
    respond::page(StatusCode::NOT_FOUND, whole("Not found", content), None)
}

/// What a sign-in form shows.
pub(crate) struct SignInForm<'a> {
    /// Where it is sent.
    pub(crate) action: &'a str,
    /// Shows that it came from here.
    pub(crate) token: &'a str,
    /// For which program.
    pub(crate) program: &'a str,
    /// The name to begin with.
    pub(crate) user: &'a str,
    /// What was wrong before.
    pub(crate) problem: Option<&'a str>,
    /// What is sent along.
    pub(crate) hidden: &'a [(&'a str, &'a str)],
    /// Where an answer may lead.
    pub(crate) leads_to: Option<&'a str>,
    /// What other providers are asked on behalf of: a query.
    pub(crate) question: &'a str,
}

/// The sign-in page.
pub(crate) fn sign_in(call: &Call<'_>, status: StatusCode, form: &SignInForm<'_>) -> Response<Body> {
    let problem = form
        .problem
        .map(|it| format!("<p role=\"alert\" id=\"problem\">{}</p>\n", escape(it)))
        .unwrap_or_default();
    let focus = |is_here: bool| if is_here { " autofocus" } else { "" };
    let content = format!(
        "<p>Sign in to go on to <strong>{program}</strong>.</p>\n{problem}<form method=\"post\" action=\"{action}\">\n\
         {hidden}<label for=\"username\">User name</label>\n<input id=\"username\" name=\"username\" value=\"{user}\" \
         autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" maxlength=\"253\" required{name_focus}>\n\
         <label for=\"password\">Password</label>\n<input id=\"password\" name=\"password\" type=\"password\" \
         autocomplete=\"current-password\" maxlength=\"1024\" required{password_focus}>\n<label for=\"otp\">One-time code, if you \
         have one</label>\n<input id=\"otp\" name=\"otp\" inputmode=\"numeric\" autocomplete=\"one-time-code\" \
         maxlength=\"8\">\n<button type=\"submit\">Sign in</button>\n</form>\n{others}",
        program = escape(form.program),
        action = escape(form.action),
        hidden = hidden(form.token, form.hidden),
        user = escape(form.user),
        name_focus = focus(form.user.is_empty()),
        password_focus = focus(!form.user.is_empty()),
        others = others(call, form.question),
    );
    let title = match call.title() {
        // Newcomers do not know yet that the first organisation has this name.
        "root" => "Sign in to Fairway".to_owned(),
        organisation => format!("Sign in to {organisation}"),
    };
    respond::page(status, whole(&title, &content), form.leads_to)
}

/// The other providers. They are links and no forms: where a form may lead is a page's to say, and the provider's address is not known
/// before it was asked.
fn others(call: &Call<'_>, question: &str) -> String {
    let links = call.settings.identity_providers.iter().map(|it| {
        format!(
            "<p><a class=\"button\" href=\"external/{}?{}\">Sign in with {}</a></p>\n",
            escape(&it.name),
            escape(question),
            escape(&it.display_name)
        )
    });
    links.collect()
}

pub(crate) fn hidden(token: &str, pairs: &[(&str, &str)]) -> String {
    [("form_token", token)]
        .iter()
        .chain(pairs)
        .map(|(name, value)| {
            format!(
                "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
                escape(name),
                escape(value)
            )
        })
        .collect()
}

/// Asks for the code that a device shows.
pub(crate) fn ask_code(call: &Call<'_>, status: StatusCode, problem: Option<&str>) -> Response<Body> {
    let problem = problem
        .map(|it| format!("<p role=\"alert\">{}</p>\n", escape(it)))
        .unwrap_or_default();
    let content = format!(
        "{problem}<form method=\"get\" action=\"device\">\n<label for=\"user_code\">The code that your device \
         shows</label>\n<input id=\"user_code\" name=\"user_code\" autocomplete=\"off\" autocapitalize=\"characters\" \
         spellcheck=\"false\" maxlength=\"16\" required autofocus>\n<button type=\"submit\">Go on</button>\n</form>\n"
    );
    let title = format!("Sign in a device to {}", call.title());
    respond::page(status, whole(&title, &content), None)
}

/// Asks whether a device may act for somebody.
pub(crate) fn ask_device(program: &str, user: &str, code: &str, token: &str) -> Response<Body> {
    let content = format!(
        "<p><strong>{program}</strong> wants to act as <strong>{user}</strong>. Go on only if you started it yourself, just \
         now, and it shows this code:</p>\n<p class=\"code\">{code}</p>\n<form method=\"post\" action=\"device\">\n{hidden}<button \
         type=\"submit\" name=\"decision\" value=\"allow\">Allow</button>\n<button type=\"submit\" name=\"decision\" \
         value=\"refuse\" class=\"second\">Refuse</button>\n</form>\n",
        program = escape(program),
        user = escape(user),
        code = escape(code),
        hidden = hidden(token, &[("user_code", code)]),
    );
    respond::page(StatusCode::OK, whole("Allow a device?", &content), None)
}

/// Asks whether a session shall end.
pub(crate) fn ask_logout(call: &Call<'_>, token: &str) -> Response<Body> {
    let content = format!(
        "<form method=\"post\" action=\"logout\">\n{}<p>Sign out of {}?</p>\n<button type=\"submit\">Sign out</button>\n</form>\n",
        hidden(token, &[]),
        escape(call.title()),
    );
    respond::page(StatusCode::OK, whole("Sign out", &content), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_stranger_becomes_part_of_the_page() {
        assert_eq!(escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        let page = whole("<script>", &hidden("t", &[("\"><script>", "'\"><script>")]));
        assert!(!page.contains("<script"), "{page}");
    }
}
