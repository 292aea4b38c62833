// Signing in with a code, if the link did not bring one.

import { html, nothing, type TemplateResult } from 'lit-html'
import { messageOf, type App } from '../app'

export function loginPage (app: App): TemplateResult {
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const code = String(new FormData(event.target as HTMLFormElement).get('code') ?? '')
    try {
      await app.signIn(code)
    } catch (error) {
      app.loginError = messageOf(error)
    }
    app.changed()
  }
  return html`<main class="page login"><h1>Sign in</h1>
    <form @submit=${submit}>
      <label class="field"><span>Code</span><input type="text" name="code" aria-label="Code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" required></label>
      ${app.loginError ? html`<p class="card-error" role="alert">${app.loginError}</p>` : nothing}
      <button type="submit" class="primary">Sign in</button>
    </form>
    <p class="hint">A link with a code is printed where the server was started. <code>whimbrel serve login</code> prints a new one; it works once, for ten minutes.</p>
  </main>`
}
