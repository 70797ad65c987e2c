/** Questions as forms. Answers are drafts that every window shares until somebody submits; nothing times out here. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerValue, InputAnswer, InputQuestion, InputRequest, Uri } from "../ahp/index.ts";
import { mayAnswer, mayWrite, onlyWords } from "../local/me.ts";
import { dispatch } from "../mirror/store.ts";
import { Markdown } from "../parts/markdown.tsx";
import { act, usePointed } from "../ui/bits.tsx";

const DEBOUNCE = 250;

function initial(question: InputQuestion): AnswerValue | undefined {
  const value = question.defaultValue;
  if (typeof value === "string") return { kind: "text", value };
  if (typeof value === "number") return { kind: "number", value };
  if (typeof value === "boolean") return { kind: "boolean", value };
  return undefined;
}

/** The initial answer of each kind of question. */
const EMPTY: Record<string, AnswerValue> = {
  boolean: { kind: "boolean", value: false },
  "single-select": { kind: "selected", value: "" },
  "multi-select": { kind: "selected-many", value: [] },
  number: { kind: "number", value: 0 },
  integer: { kind: "number", value: 0 },
};

const valueOf = (answer: InputAnswer | undefined): AnswerValue | undefined =>
  answer && answer.state !== "skipped" ? answer.value : undefined;

function isGiven(value: AnswerValue | undefined): boolean {
  if (!value) return false;
  if (value.kind === "text") return value.value !== "";
  if (value.kind === "selected") return value.value !== "" || Boolean(value.freeformValues?.some(Boolean));
  if (value.kind === "selected-many") return value.value.length > 0 || Boolean(value.freeformValues?.some(Boolean));
  return value.kind !== "number" || Number.isFinite(value.value);
}

/** A number that is erased or incomplete. It is not shared with other windows, and the form cannot be sent yet. */
const isNothing = (answer: InputAnswer): boolean => {
  const value = valueOf(answer);
  return value?.kind === "number" && Number.isNaN(value.value);
};

interface FieldProps {
  question: InputQuestion;
  name: string;
  value: AnswerValue | undefined;
  disabled: boolean;
  onChange(value: AnswerValue): void;
}

function TextField({ question, value, disabled, onChange, name }: FieldProps): JSX.Element {
  const text = value?.kind === "text" ? value.value : "";
  const long = !question.format && (question.max === undefined || question.max > 120);
  const shared = { id: name, disabled, value: text, minLength: question.min, maxLength: question.max };
  const type = question.format === "email" ? "email" : question.format === "uri" ? "url" : question.format === "date" ? "date" : "text";
  return long
    ? <textarea {...shared} rows={2} onInput={(event) => onChange({ kind: "text", value: event.currentTarget.value })} />
    : <input {...shared} type={type as "text"} onInput={(event) => onChange({ kind: "text", value: event.currentTarget.value })} />;
}

function NumberField({ question, value, disabled, onChange, name }: FieldProps): JSX.Element {
  return (
    <input id={name} type="number" inputMode={question.kind === "integer" ? "numeric" : "decimal"} step={question.kind === "integer" ? 1 : "any"}
      min={question.min} max={question.max} disabled={disabled} value={value?.kind === "number" && Number.isFinite(value.value) ? value.value : ""}
      onInput={(event) => onChange({ kind: "number", value: event.currentTarget.valueAsNumber })} />
  );
}

function Choice({ question, value, disabled, onChange, name }: FieldProps): JSX.Element {
  const many = question.kind === "multi-select";
  const chosen = value?.kind === "selected" ? [value.value] : value?.kind === "selected-many" ? value.value : [];
  const free = value && (value.kind === "selected" || value.kind === "selected-many") ? (value.freeformValues?.[0] ?? "") : "";
  const give = (ids: string[], freeform: string): void => {
    const extra = freeform ? { freeformValues: [freeform] } : {};
    onChange(many ? { kind: "selected-many", value: ids, ...extra } : { kind: "selected", value: ids[0] ?? "", ...extra });
  };
  return (
    <div class="options">
      {question.options?.map((option) => (
        <label key={option.id} class="check">
          <input type={many ? "checkbox" : "radio"} name={name} disabled={disabled} checked={chosen.includes(option.id)}
            onChange={(event) => {
              const on = event.currentTarget.checked;
              give(many ? (on ? [...chosen, option.id] : chosen.filter((id) => id !== option.id)) : [option.id], many ? free : "");
            }} />
          <span>{option.label}{option.recommended ? <span class="muted"> (recommended)</span> : null}
            {option.description && <span class="small muted" style={{ display: "block" }}>{option.description}</span>}
          </span>
        </label>
      ))}
      {question.allowFreeformInput && (
        <input aria-label="Something else" placeholder="Something else" disabled={disabled} value={free}
          onInput={(event) => give(many ? chosen : [], event.currentTarget.value)} />
      )}
    </div>
  );
}

function Field(props: FieldProps): JSX.Element {
  const { question, value, disabled, onChange } = props;
  if (question.kind === "boolean")
    return (
      <div class="yes-no">
        {[true, false].map((each) => (
          <label key={String(each)} class="check">
            <input type="radio" name={props.name} disabled={disabled} checked={value?.kind === "boolean" && value.value === each} onChange={() => onChange({ kind: "boolean", value: each })} />
            {each ? "Yes" : "No"}
          </label>
        ))}
      </div>
    );
  if (question.kind === "number" || question.kind === "integer") return <NumberField {...props} />;
  if (question.kind === "single-select" || question.kind === "multi-select") return <Choice {...props} />;
  return <TextField {...props} />;
}

function shown(value: AnswerValue | undefined, question: InputQuestion): string {
  if (!value) return "";
  const label = (id: string): string => question.options?.find((option) => option.id === id)?.label ?? id;
  if (value.kind === "boolean") return value.value ? "Yes" : "No";
  if (value.kind === "selected") return [value.value && label(value.value), ...(value.freeformValues ?? [])].filter(Boolean).join(", ");
  if (value.kind === "selected-many") return [...value.value.map(label), ...(value.freeformValues ?? [])].join(", ");
  return String(value.value);
}

/** The questions and answers as text, for a form that was sent too late. */
function asText(request: InputRequest, answers: Record<string, InputAnswer>): string {
  const lines = (request.questions ?? []).map((question) => `${question.message} ${shown(valueOf(answers[question.id]), question)}`);
  return [request.message, ...lines].filter(Boolean).join("\n");
}

const RESPONSES = { accept: "Answered", decline: "Declined", cancel: "Cancelled" };

export interface QuestionFormProps {
  chat: Uri;
  request: InputRequest;
  response: "accept" | "decline" | "cancel" | undefined;
  /** True if the turn ended before an answer came. */
  expired: boolean;
  onSendAsMessage?(text: string): void;
}

export function QuestionForm({ chat, request, response, expired, onSendAsMessage }: QuestionFormProps): JSX.Element {
  const [local, setLocal] = useState<Record<string, InputAnswer>>({});
  const [missing, setMissing] = useState<string | undefined>(undefined);
  const timers = useRef(new Map<string, ReturnType<typeof setTimeout>>());
  const answers: Record<string, InputAnswer> = { ...request.answers, ...local };
  const closed = response !== undefined || expired;
  const form = usePointed<HTMLFormElement>([`${chat} ${request.id}`]);

  // A value that the host has confirmed does not belong to this window any more: another window may change it.
  useEffect(() => {
    setLocal((mine) => Object.fromEntries(Object.entries(mine).filter(([id, answer]) => JSON.stringify(request.answers?.[id]) !== JSON.stringify(answer))));
  }, [request.answers]);

  const share = (id: string, answer: InputAnswer): void => {
    setLocal((mine) => ({ ...mine, [id]: answer }));
    clearTimeout(timers.current.get(id));
    if (expired || isNothing(answer)) return;
    timers.current.set(id, setTimeout(() => {
      void dispatch(chat, { type: "chat/inputAnswerChanged", requestId: request.id, questionId: id, answer }, "chat").then((outcome) => {
        // A refused draft stays in this form; submitting it shows what is wrong.
        if (outcome.accepted) setLocal(({ [id]: mine, ...others }) => (JSON.stringify(mine) === JSON.stringify(answer) || !mine ? others : { ...others, [id]: mine }));
      });
    }, DEBOUNCE));
  };

  const submit = (event: Event): void => {
    event.preventDefault();
    const given: Record<string, InputAnswer> = {};
    for (const question of request.questions ?? []) {
      const answer = answers[question.id];
      const value = answer?.state === "skipped" ? undefined : (valueOf(answer) ?? initial(question));
      if (answer?.state === "skipped" && !question.required) given[question.id] = answer;
      else if (isGiven(value)) given[question.id] = { state: "submitted", value: value as AnswerValue };
      else if (question.required) {
        setMissing(question.id);
        const show = (): void => form.current?.querySelector<HTMLElement>(".question:has([role=alert]) :is(input, textarea)")?.focus();
        requestAnimationFrame(() => requestAnimationFrame(show)); // The form may be out of sight; after two frames the chat has scrolled to its end.
        return;
      }
    }
    setMissing(undefined);
    for (const timer of timers.current.values()) clearTimeout(timer);
    void finish("accept", given);
  };
  const finish = (how: string, given?: Record<string, InputAnswer>): Promise<boolean> =>
    act(chat, { type: "chat/inputCompleted", requestId: request.id, response: how, ...(given ? { answers: given } : {}) }, "chat");

  return (
    <form ref={form} tabIndex={-1} class={`card stack ${closed ? "" : "needs"} ${response === undefined ? "" : "answered"}`} noValidate onSubmit={submit} aria-label="Question">
      {request.message && <Markdown content={request.message} />}
      {request.url && /^https?:/.test(request.url) && <a class="break" href={request.url} target="_blank" rel="noopener noreferrer">{request.url}</a>}
      <div class="questions">{request.questions?.map((question) => {
        const answer = answers[question.id];
        if (response !== undefined && response !== "accept" && !isGiven(valueOf(answer))) return null; // Nothing was answered.
        const skipped = answer?.state === "skipped";
        const name = `${request.id}-${question.id}`;
        const value = valueOf(answer) ?? (closed ? undefined : initial(question));
        return (
          <fieldset key={question.id} class="question">
            <legend>{question.title || question.message}{question.required && response === undefined ? <span class="muted"> (required)</span> : null}
              {!closed && mayAnswer() && !question.required && (
                <button type="button" class="btn quiet skip" aria-pressed={skipped} onClick={() => share(question.id, skipped ? { state: "draft", value: initial(question) ?? EMPTY[question.kind] ?? { kind: "text", value: "" } } : { state: "skipped" })}>{skipped ? "Skipped" : "Skip"}</button>
              )}
            </legend>
            {question.title && <p class="small muted break">{question.message}</p>}
            {response !== undefined
              ? <p class="break">{skipped ? <span class="muted">Skipped</span> : shown(value, question) || <span class="muted">No answer</span>}</p>
              : <label for={name} class="stack"><span class="sr">{question.message}</span><Field question={question} name={name} value={skipped ? undefined : value} disabled={skipped || !mayAnswer()} onChange={(next) => share(question.id, { state: "draft", value: next })} /></label>}
            {missing === question.id && <p class="small danger" role="alert">This one needs an answer.</p>}
          </fieldset>
        );
      })}</div>
      {response !== undefined ? <p class="small muted">{RESPONSES[response]}</p> : expired ? (
        <div class="row wrap">
          <span class="small muted">The agent did not wait for this answer.</span>
          {onSendAsMessage && mayWrite() && <button type="button" class="btn" onClick={() => onSendAsMessage(asText(request, answers))}>Send as message</button>}
        </div>
      ) : !mayAnswer() ? <p class="small muted">{onlyWords()}</p> : (
        <div class="row wrap">
          <button type="submit" class="btn primary">Submit</button>
          <button type="button" class="btn" onClick={() => void finish("decline")}>Decline</button>
        </div>
      )}
    </form>
  );
}
