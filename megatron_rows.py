import windrow as wr
from megatron.core import parallel_state


def loader_of(view, micro_batch_size):
    group = parallel_state.get_data_parallel_group()            # after initialize_model_parallel()
    return wr.Loader(view, batch_size=micro_batch_size, seed=1, group=group, framework="torch")
