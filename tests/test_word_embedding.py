"""WordEmbedding against the rows that it is, and that a large table is only touched where a batch has words."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.word_embedding import WordEmbedding
from tests.checks import check_layer
from zoo import optimizers
from zoo.models.malstm import malstm
from zoo.models.qrnn import qrnn

ROWS = 1000
IDS = np.array([[1, 2, 2], [3, 0, 0], [6, 4, 0]], "int32")


def test_promises():
    check_layer(WordEmbedding, {"num_words": 9, "units": 4, "initializer": "ones"}, {"ids": IDS})


def test_gives_rows_of_its_table():
    layer = WordEmbedding(9, 4)
    found = layer(IDS)
    np.testing.assert_array_equal(found, np.where(IDS[..., None] > 0, np.array(layer.table)[IDS], 0))


def operations_of_a_step(make, optimizer, policy="float32"):
    keras.config.set_dtype_policy(policy)
    try:
        model = make(np.ones((ROWS, 4), "float32"), trainable_embeddings=True)
    finally:
        keras.config.set_dtype_policy("float32")
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(query, candidate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model({"query": query, "candidate": candidate}))
        gradients = tape.gradient(loss, [weight.value for weight in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)

    return step.get_concrete_function(IDS, IDS[:, None]).graph.get_operations()


@pytest.mark.parametrize("make", [qrnn, malstm])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("optimizer", [optimizers.LazyAdam, optimizers.Adagrad])
def test_no_operation_of_a_training_step_reads_the_table(make, policy, optimizer):
    operations = operations_of_a_step(make, optimizer(), policy)
    whole = [
        operation.name
        for operation in operations
        for output in operation.outputs
        if output.shape.rank == 2 and output.shape[0] == ROWS and output.consumers()
    ]
    assert not whole
    types = [operation.type for operation in operations]
    assert "ResourceGather" in types and "ResourceScatterSub" in types


@pytest.mark.parametrize("optimizer", [optimizers.Adam(), optimizers.RMSprop(momentum=0.9), optimizers.Adadelta()])
def test_a_table_that_is_written_as_a_whole_is_not_copied_before(optimizer):
    (ended,) = [x for x in operations_of_a_step(qrnn, optimizer) if x.type == "DisableCopyOnRead"]
    table = ended.inputs[0]
    assert "ResourceGather" in [operation.type for operation in ended.control_inputs]
    (write,) = [operation for operation in table.consumers() if operation.type.startswith("Assign")]
    assert ended in write.control_inputs


@pytest.mark.parametrize("name", ["num_words", "units"])
def test_errors(name):
    with pytest.raises(ValueError, match=f"Received: {name}=0"):
        WordEmbedding(**{"num_words": 9, "units": 4, name: 0})
