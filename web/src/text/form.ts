// Texts of the questions of templates.

import { texts } from "./t";

export const t = texts("form", {
    required: "Answer this question.",
    pattern: "This does not have the form that is asked for.",
    format: "This is not a valid {format}.",
    enum: "Choose one of the options.",
    minLength: "This is too short.",
    maxLength: "This is too long.",
    range: "This is out of range.",
    type: "This is of the wrong type.",
    items: "There are too few or too many, or some twice.",
});
