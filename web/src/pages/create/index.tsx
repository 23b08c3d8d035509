// The golden path: cards of templates, the form, the review, the run.

import { Route, Routes } from "react-router";
import { NotFound } from "../../widgets";
import { Cards } from "./Cards";
import { FormPage } from "./FormPage";

export default function Create() {
    return (
        <Routes>
            <Route index element={<Cards />} />
            <Route path=":namespace/:name" element={<FormPage />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}
