import { render } from "preact";

render(<p>ahpkit</p>, document.getElementById("app") as HTMLElement);
