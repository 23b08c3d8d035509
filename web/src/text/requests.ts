// What went wrong with a request, and what to do about it.

import { texts } from "./t";

export const t = texts("requests", {
    noAnswer: "no answer within {seconds} seconds",
    stalled: "the answer stopped halfway for {seconds} seconds",
    notJson: "the answer to {path} is not JSON",
});

export const advice = texts("errors", {
    unauthorized: "Your session has ended. Sign in again.",
    forbidden: "You may not do this. Ask an administrator of the workspace for a role that grants it.",
    notFound: "It does not exist, or was deleted meanwhile. Go back to the list.",
    conflict: "Somebody has changed it meanwhile. Look at the new state and try again.",
    exists: "One of this name exists already. Choose another name, or look at the one that exists.",
    quota: "A quota of the workspace is used up. Delete what is no longer needed, or ask an administrator for more.",
    expired: "What was read is too old to go on from. Reload the page.",
    late: "The server took too long. Check whether it was done all the same, and try again.",
    tooMany: "The server is asked too much at the moment. Wait {seconds} seconds and try again.",
    invalid: "Correct what the message names and try again.",
    broken: "The server failed. Try again; if it keeps failing, look at the server's log.",
    silent: "The server does not answer. Check that Fairway is running and that you are connected.",
    several: "{n} of {all} were refused",
    unexpected: "The answer was not understood. Reload the page; the portal may have been updated.",
});
