"""The recurrence of `GatedConv`, with its gradient written by hand.

N real steps of some texts, step by step, see `layers.time_steps`; B texts, d size, n order, g size of the gate, d or 1.
"""

from keras import ops


def gated_recurrence(
    steps, inputs, recurrent_kernel, gate_bias, bias, initial, multiplicative=False, with_gates=False, with_states=True
):
    """The final states of the equations in `GatedConv`, and of all steps h_t and l_t if they are wanted.

    On the way back the products of a step that depend on no other are not made again, and those that make the gradient
    of the recurrent kernel are one product after the loop.

    Args:
        steps: of the texts, from `time_steps`.
        inputs: what the equations add of the words: `x W_l` `[N, g]`, `x W_1` ... `x W_n` `[N, d]`, and with an output
            gate `x W_o` `[N, d]`.
        recurrent_kernel: U_l beside U_o, `[d, g]` or `[d, g + d]`.
        gate_bias: b_l beside b_o.
        bias: b, `[d]`.
        initial: c^1 ... c^n and h, each `[B, d]`.
        multiplicative: the filter mode.
        with_gates: whether l is wanted.
        with_states: whether h is wanted; where the final one alone is, a step needs less time and memory.

    Returns:
        h `[N, d]` or None, the list of final states, each `[B, d]`, and l `[N, g]` or None.
    """
    order, size = len(initial) - 1, inputs[0].shape[-1]
    has_output_gate = len(inputs) > order + 1

    # Defined here, and never passed on: TensorFlow unwraps a custom gradient given to a tf.function.
    @ops.custom_gradient
    def run(*arrays):
        parts, (kernel, gate_bias, bias) = list(arrays[: len(inputs)]), arrays[len(inputs) : len(inputs) + 3]
        filters = parts[1 : order + 1]

        def step(state, at_t):
            (*c, h), (x_gate, *x, x_output) = state, at_t if has_output_gate else [*at_t, None]
            gates = ops.matmul(h, kernel) + gate_bias
            decay = ops.sigmoid(x_gate + gates[:, :size])
            after = _grown(c, decay, x, multiplicative)
            h_t = bounded = ops.tanh(after[-1] + bias)
            if not has_output_gate:
                return [*after, h_t], [h_t, decay, *c, h]
            open_ = ops.sigmoid(x_output + gates[:, size:])
            h_t = open_ * bounded
            return [*after, h_t], [h_t, decay, *c, h, bounded, open_]

        (h, decay, *states), final = steps.loop(step, list(arrays[len(inputs) + 3 :]), parts)

        def gradient(*args, upstream=None):
            upstream = args if upstream is None else upstream
            if isinstance(upstream[0], list | tuple):
                (upstream,) = upstream
            d_final, of_steps = list(upstream[: order + 1]), upstream[order + 1 :]
            c, h_before, (bounded, *open_) = states[:order], states[order], states[order + 1 :] or [h]
            backward = _backward_step(order, kernel, multiplicative, with_states, with_gates)
            kept = [*filters, *c, decay, bounded, *of_steps, *open_]
            outputs, d_initial = steps.loop(backward, d_final, kept, reverse=True)
            h_before, *d_parts, d_sum = (steps.whole(x) for x in (h_before, *outputs))
            d_gates = d_parts[:: order + 1]
            d_gates = d_gates[0] if len(d_gates) == 1 else ops.concatenate(d_gates, axis=-1)
            h_before, d_gates, d_sum = (ops.reshape(x, (-1, x.shape[-1])) for x in (h_before, d_gates, d_sum))
            d_kernel = ops.matmul(ops.transpose(h_before), d_gates)
            return (*d_parts, d_kernel, ops.sum(d_gates, axis=0), ops.sum(d_sum, axis=0), *d_initial)

        wanted = [h] * with_states + [decay] * with_gates
        return (*final, *(steps.whole(x) for x in wanted)), gradient

    outputs = list(run(*inputs, recurrent_kernel, gate_bias, bias, *initial))
    final, wanted = outputs[: order + 1], outputs[order + 1 :]
    states = wanted.pop(0) if with_states else None
    gates = wanted.pop(0) if with_gates else None
    return states, final, gates


def _grown(c, decay, x, multiplicative):
    """c^1 ... c^n after a step."""
    after = []
    for i in range(len(x)):
        taken = _taken(i, c, x, after, multiplicative)
        after.append(taken + decay * (c[i] - taken))
    return after


def _taken(i, c, x, after, multiplicative):
    """What c^{i+1} takes in: the word, and where there are shorter n-grams, these grown by it."""
    if not i:
        return x[0]
    return after[i - 1] * x[i] if multiplicative else c[i - 1] + x[i]


def _backward_step(order, kernel, multiplicative, with_states, with_gates):
    def step(state, at_t):
        (*dc, dh), x, c = state, at_t[:order], at_t[order : 2 * order]
        decay, bounded, *at_t = at_t[2 * order :]
        if with_states:
            dh = dh + at_t.pop(0)
        dl = [at_t.pop(0)] if with_gates else []
        open_ = at_t
        d_output = [dh * bounded * gate * (1 - gate) for gate in open_]
        for gate in open_:
            dh = dh * gate
        d_sum = dh * (1 - bounded * bounded)
        dc[-1] = dc[-1] + d_sum
        after = _grown(c[:-1], decay, x[:-1], multiplicative) if multiplicative else None
        d_before, dx, d_decay = [None] * order, [None] * order, []
        for i in reversed(range(order)):
            d_decay.append(dc[i] * (c[i] - _taken(i, c, x, after, multiplicative)))
            kept = dc[i] * decay
            d_before[i] = kept if d_before[i] is None else d_before[i] + kept
            dx[i] = d_taken = dc[i] - kept
            if i and multiplicative:
                dx[i], dc[i - 1] = d_taken * after[i - 1], dc[i - 1] + d_taken * x[i]
            elif i:
                d_before[i - 1] = d_taken
        d_decay = sum(d_decay[1:], d_decay[0])
        if decay.shape[-1] == 1:
            d_decay = ops.sum(d_decay, axis=-1, keepdims=True)
        d_gates = [sum(dl, d_decay) * decay * (1 - decay), *d_output]
        d_preactivation = ops.concatenate(d_gates, axis=-1) if d_output else d_gates[0]
        dh = ops.matmul(d_preactivation, ops.transpose(kernel))
        return [*d_before, dh], [d_gates[0], *dx, *d_output, d_sum]

    return step
