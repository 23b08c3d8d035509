import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { OneOf, SomeOf } from "./Combobox";

const OFFERS = [{ value: "group:default/web", label: "web" }];
const nothing = (): void => undefined;
const field = { id: "page0_owner", offers: OFFERS, isFree: true };
const inputOf = (html: string): string => /<input[^>]*>/.exec(html)?.[0] ?? "";

describe("a field with offers", () => {
    it("is a combobox that takes its name from the label of the question", () => {
        const input = inputOf(renderToStaticMarkup(<OneOf {...field} isRequired value="group:default/web" onChange={nothing} />));
        for (const part of ['id="page0_owner"', 'role="combobox"', 'aria-expanded="false"', 'aria-controls="page0_owner-offers"', 'aria-describedby="page0_owner-help"', 'aria-required="true"', 'value="web"']) expect(input).toContain(part);
        expect(input).not.toContain("aria-label");
        expect(input).not.toContain("aria-invalid");
    });

    it.each([
        ["an offer by its label", "group:default/web", "web"], ["another as it is written", "group:default/ops", "OPS group:default/ops"], ["no answer", undefined, ""],
    ])("shows %s", (_what, value, text) => {
        expect(inputOf(renderToStaticMarkup(<OneOf {...field} value={value} onChange={nothing} shown={one => `OPS ${one}`} />))).toContain(`value="${text}"`);
    });

    it("says that it is wrong, by mark and by word", () => {
        const html = renderToStaticMarkup(<OneOf {...field} isInvalid value="x" onChange={nothing} />);
        expect(inputOf(html)).toContain('aria-invalid="true"');
        expect(html).toContain("pf-m-danger");
    });

    it("that is disabled can be neither typed in nor cleared", () => {
        const html = renderToStaticMarkup(<OneOf {...field} isDisabled value="x" onChange={nothing} />);
        expect(inputOf(html)).toContain("disabled");
        expect(html).not.toContain('aria-label="Clear"');
        expect(renderToStaticMarkup(<OneOf {...field} value="x" onChange={nothing} />)).toContain('aria-label="Clear"');
    });

    it("of several answers has each as a label that can be taken away", () => {
        const html = renderToStaticMarkup(<SomeOf {...field} values={["group:default/web", "group:default/ops"]} onChange={nothing} />);
        expect(html).toContain('aria-label="Take web away"');
        expect(html).toContain('aria-label="Take group:default/ops away"');
        expect(inputOf(html)).toContain('value=""');
    });
});
