// The bodies of question, plan and elicitation cards.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import type { FieldSchema, HostRequest, Mode } from '../contract'
import { markdown, safeAddress } from '../text/markdown'
import { visible } from '../text/visible'

interface Question { question: string, header?: string, multiSelect?: boolean, options?: { label: string, description?: string, preview?: string }[] }

export function questionBody (app: App, request: HostRequest): TemplateResult {
  const questions = (request.request.input.questions as Question[] | undefined) ?? []
  const { sending } = app.answerDraft(request.id)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const answers = readAnswers(event.target as HTMLFormElement, questions)
    const missing = questions.find(question => answers[question.question] === undefined)
    if (missing) return app.setDraft(request.id, { error: `No answer yet: ${missing.question}` })
    void app.answer(request.id, { decision: 'allow', answers })
  }
  return html`<form class="card-body" @submit=${submit}>
    ${questions.map((question, index) => html`<fieldset class="question" aria-label=${question.question}>
      <legend>${question.header ? html`<span class="tag">${visible(question.header)}</span>` : nothing}${visible(question.question)}${question.multiSelect ? html`<span class="hint">several possible</span>` : nothing}</legend>
      ${(question.options ?? []).map((option, place) => {
        const id = `${request.id}-${index}-${place}`
        return html`<label class="option">
          <input type=${question.multiSelect ? 'checkbox' : 'radio'} name="q${index}" value=${option.label} aria-labelledby="${id}-label" aria-describedby=${option.description ? `${id}-description` : nothing}>
          <span><b id="${id}-label">${visible(option.label)}</b>${option.description ? html`<span class="option-description" id="${id}-description">${visible(option.description)}</span>` : nothing}</span>
        </label>`
      })}
      <label class="option own"><span class="unseen">Other answer</span><input type="text" name="other${index}" placeholder="Other answer" autocomplete="off" @input=${clearRadio}></label>
    </fieldset>`)}
    <div class="actions">
      <button type="submit" class="primary" ?disabled=${sending}>Answer</button>
      <span class="divider"></span>
      <button type="button" class="deny" ?disabled=${sending} @click=${() => app.answer(request.id, { decision: 'deny' })}>Do not answer</button>
    </div>
  </form>`
}

/** Own words take the place of a chosen radio button. */
function clearRadio (event: Event) {
  const field = event.target as HTMLInputElement
  if (!field.value) return
  const chosen = field.closest('fieldset')?.querySelector<HTMLInputElement>('input[type=radio]:checked')
  if (chosen) chosen.checked = false
}

function readAnswers (form: HTMLFormElement, questions: Question[]): Record<string, string | string[]> {
  const data = new FormData(form)
  const answers: Record<string, string | string[]> = {}
  questions.forEach((question, index) => {
    const chosen = data.getAll(`q${index}`).map(String)
    const other = String(data.get(`other${index}`) ?? '').trim()
    if (question.multiSelect) {
      const all = other ? [...chosen, other] : chosen
      if (all.length) answers[question.question] = all
    } else if (other || chosen[0]) {
      answers[question.question] = other || chosen[0]!
    }
  })
  return answers
}

export function planBody (app: App, request: HostRequest): TemplateResult {
  const plan = String(request.request.input.plan ?? '')
  const { sending } = app.answerDraft(request.id)
  const answer = (decision: 'allow' | 'deny', mode?: Mode) => (event: Event) => {
    const field = (event.currentTarget as Element).closest('.card')?.querySelector<HTMLInputElement>('input[name=note]')
    const message = field?.value.trim()
    void app.answer(request.id, { decision, ...(mode ? { mode } : {}), ...(message ? { message } : {}) })
  }
  return html`<div class="card-body plan-text">${plan ? markdown(plan) : html`<p class="reason">The plan stands above.</p>`}</div>
    <div class="actions">
      <button type="button" class="primary" ?disabled=${sending} @click=${answer('allow')}>Approve</button>
      <button type="button" ?disabled=${sending} @click=${answer('allow', 'acceptEdits')}>Approve and accept edits</button>
      <span class="divider"></span>
      <button type="button" class="deny" ?disabled=${sending} @click=${answer('deny')}>Keep planning</button>
    </div>
    <label class="note-field"><span class="unseen">Note to the agent</span><input type="text" name="note" placeholder="Note to the agent: what should be different" autocomplete="off"></label>`
}

export function elicitationBody (app: App, request: HostRequest): TemplateResult {
  const { message, url, requested_schema: schema } = request.request
  const { sending } = app.answerDraft(request.id)
  const fields = Object.entries(schema?.properties ?? {})
  const required = new Set(schema?.required ?? [])
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.target as HTMLFormElement
    void app.answer(request.id, { decision: 'allow', input: readFields(form, fields) })
  }
  const address = url ? safeAddress(url) : null
  return html`<form class="card-body" @submit=${submit}>
    <p>${visible(message ?? '')}</p>
    ${url ? html`<p class="reason">${address ? html`<a href=${address} target="_blank" rel="noopener noreferrer">${visible(url)}</a>` : visible(url)}</p>` : nothing}
    ${fields.map(([name, field]) => elicitationField(name, field, required.has(name)))}
    <div class="actions">
      <button type="submit" class="primary" ?disabled=${sending}>Answer</button>
      <span class="divider"></span>
      <button type="button" class="deny" ?disabled=${sending} @click=${() => app.answer(request.id, { decision: 'deny' })}>Decline</button>
    </div>
  </form>`
}

function elicitationField (name: string, field: FieldSchema, required: boolean): TemplateResult {
  const label = html`<span>${visible(field.title ?? name)}${required ? '' : html` <span class="hint">optional</span>`}</span>`
  const hint = field.description ? html`<span class="hint">${visible(field.description)}</span>` : nothing
  if (field.type === 'boolean') {
    return html`<label class="option"><input type="checkbox" name=${name} ?checked=${field.default === true}><span>${visible(field.title ?? name)}${hint}</span></label>`
  }
  if (field.enum) {
    return html`<label class="field">${label}<select name=${name} ?required=${required}>
      ${required ? nothing : html`<option value=""></option>`}
      ${field.enum.map((value, index) => html`<option value=${value} ?selected=${field.default === value}>${visible(field.enumNames?.[index] ?? value)}</option>`)}
    </select>${hint}</label>`
  }
  const number = field.type === 'number' || field.type === 'integer'
  return html`<label class="field">${label}<input type=${number ? 'number' : 'text'} step=${field.type === 'integer' ? '1' : 'any'} name=${name} ?required=${required} .value=${String(field.default ?? '')} autocomplete="off">${hint}</label>`
}

function readFields (form: HTMLFormElement, fields: [string, FieldSchema][]): Record<string, unknown> {
  const data = new FormData(form)
  const content: Record<string, unknown> = {}
  for (const [name, field] of fields) {
    const value = String(data.get(name) ?? '')
    if (field.type === 'boolean') content[name] = data.has(name)
    else if (value === '') continue
    else content[name] = field.type === 'number' || field.type === 'integer' ? Number(value) : value
  }
  return content
}
