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
    entityName: "A name has letters, digits, dashes, dots and underscores between them, 63 at most.",
    entityTag: "{tag} is no tag: tags have small letters, digits, + and #, with dashes between them.",
    repoParts: "A repository has a host, an owner and a name.",
    offers: "Offers",
    offersOpen: "Show or hide the offers",
    offersClear: "Clear",
    offersLoading: "Looking",
    offersNone: "Nothing matches",
    offersNoneFree: "Nothing matches; what you type is taken as it is",
    offersMore: "{n} more: type some letters of what you look for",
    chosen: "Chosen",
    takeAway: "Take {what} away",
});
