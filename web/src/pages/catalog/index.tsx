// The software catalog: the list, and a page for each entity.

import { Route, Routes } from "react-router";
import { NotFound } from "../../widgets";
import { EntityPage } from "./EntityPage";
import { ListPage } from "./ListPage";

export default function Catalog() {
    return (
        <Routes>
            <Route index element={<ListPage />} />
            <Route path=":kind/:namespace/:name" element={<EntityPage />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}
